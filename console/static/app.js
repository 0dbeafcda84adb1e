// The application: it signs in, opens pages, and renders everything.
import { html, nothing, render } from './lib/html.js'
import { activity, get, loadIdentity } from './lib/api.js'
import { icon } from './lib/icons.js'
import { palette } from './lib/palette.js'
import { go, link, route, startRouter } from './lib/router.js'
import { scrollTabs } from './lib/scrolltabs.js'
import { resumeSession, session, signOut } from './lib/session.js'
import { closeAll, pageOpened, requestDrawer, shell, sidebar, toggle, topbar } from './lib/shell.js'
import { prepareSignIn, signInDialog, signInPage } from './lib/signin.js'
import { emit, on, setRenderer, update } from './lib/store.js'
import { applyTheme } from './lib/theme.js'
import { failure, heading, loading } from './lib/widgets.js'
import { pages } from './pages/index.js'

let ready = false
let organizations = []
const noPage = { key: '', view: null, error: null, closing: null }
let current = noPage // the open page
const toasts = []

on('toast', t => {
  toasts.push(t)
  update()
  setTimeout(() => {
    toasts.splice(toasts.indexOf(t), 1)
    update()
  }, t.kind === 'ok' ? 4000 : 9000)
})

// --- organizations and pages ---

/** Loads the organizations after the sign-in, and opens the overview if the URL has no page. */
async function enter() {
  const identity = session.identity ?? await loadIdentity()
  const own = identity.users?.[0]?.organization ?? 'default'
  try {
    organizations = (await get('/api/v1/namespaces', { background: true })).items.map(n => n.metadata.name)
  } catch {
    organizations = [own]
  }
  if (!organizations.includes(own)) organizations.unshift(own)
  if (!route.org) go(link(own, 'overview'), { replace: true })
  else if (!route.page) go(link(route.org, 'overview'), { replace: true })
}

async function loadPage(opening, page) {
  try {
    if (!page) throw new Error('The page does not exist.')
    const module = await page.load()
    const { org, names } = route
    opening.view = await module.default({ org, names, signal: opening.closing.signal })
  } catch (e) {
    if (e.name === 'AbortError') return
    // After an update of the server the modules of the old version no longer exist.
    const outdated = /import|module/i.test(e.message)
    opening.error = outdated ? new Error('The server has a new version of the console. Reload the page.') : e
  }
  update()
}

/** Opens the page of the URL, unless it is open. */
function openPage() {
  if (!session.active || !route.page) return
  const key = JSON.stringify([route.org, route.page, route.names])
  if (current.key === key) return
  current.closing?.abort()
  current = { ...noPage, key, closing: new AbortController() }
  shell.menu = false
  loadPage(current, pages.find(p => p.id === route.page))
}

function closePage() {
  current.closing?.abort()
  current = noPage
}

// --- rendering ---

const reload = () => location.reload()

function pageView() {
  if (current.error) return html`${heading({ title: 'The page could not be opened' })}${failure(current.error, reload)}`
  if (!current.view) return html`<div class="page-wait">${loading(6)}</div>`
  try {
    return current.view()
  } catch (e) {
    console.error(e)
    const advice = 'Reload the page. If the error occurs again, report it with this text.'
    return html`${heading({ title: 'The page has an error' })}${failure({ message: e.message, advice }, reload)}`
  }
}

function focusMain(e) {
  e.preventDefault()
  document.getElementById('main').focus()
}

const shellView = () => html`
  <a class="skip" href="#main" @click=${focusMain}>Skip to the content</a>
  ${sidebar(pages, organizations)}
  <div class="body">
    ${topbar(pages)}
    <main id="main" tabindex="-1">${pageView()}</main>
  </div>
  ${requestDrawer()}`

const toastView = ({ kind, text }) => html`
  <div class="toast ${kind}">${icon(kind === 'ok' ? 'check' : 'warn', 16)}<span>${text}</span></div>`

const overlays = () => html`
  ${session.expired && session.identity ? signInDialog() : nothing}
  <div class="toasts" role="status" aria-live="polite">${toasts.map(toastView)}</div>`

function draw() {
  if (!ready) return
  const root = document.getElementById('app')
  if (root.firstElementChild?.className === 'boot') root.replaceChildren()
  if (session.active && session.identity) {
    openPage()
    const page = pages.find(p => p.id === route.page)
    document.title = [route.names.at(-1), page?.title, 'Freshet'].filter(Boolean).join(' – ')
    render(shellView(), root)
  } else {
    document.title = 'Sign in – Freshet'
    render(signInPage(), root)
  }
  render(overlays(), document.getElementById('overlays'))
  root.inert = session.expired
  scrollTabs()
  emit('drawn')
}

// --- keyboard and browser events ---

function focusFilter(e) {
  const filter = document.querySelector('[data-filter]')
  if (!filter) return
  e.preventDefault()
  filter.focus()
  filter.select()
}

addEventListener('keydown', e => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName ?? '')
  if ((e.metaKey || e.ctrlKey) && e.key.toLowerCase() === 'k' && session.active) {
    e.preventDefault()
    palette(pages)
  }
  if (e.key === '/' && !typing && !document.querySelector('dialog[open]')) focusFilter(e)
  if (e.key === 'Escape') closeAll()
})

addEventListener('click', () => {
  if (shell.account) toggle('account')
})

// The browser may keep a page for its back button. Its watches are ended, because they
// use the few connections that exist without HTTP/2.
addEventListener('pagehide', () => current.closing?.abort())
addEventListener('pageshow', e => {
  if (!e.persisted) return
  current = { ...current, key: '' }
  update()
})

// --- start ---

applyTheme()
setRenderer(draw)
on('route', pageOpened)
on('signedin', () => enter().catch(e => emit('toast', { kind: 'bad', text: e.message })))
on('signedout', () => {
  closePage()
  activity.length = 0
  prepareSignIn()
})
on('expired', () => prepareSignIn())
startRouter()

let problem = ''
try {
  await resumeSession()
} catch (e) {
  problem = e.message
}
if (session.active) {
  try {
    await loadIdentity()
  } catch (e) {
    problem = e.message
    await signOut()
  }
}
if (!session.active || !session.identity) await prepareSignIn(problem)
ready = true
update()
