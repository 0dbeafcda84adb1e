// The shell: sign-in, menu, top bar, the page, and what lies above it.
import { html, nothing, render } from './lib/html.js'
import { icon, logo } from './lib/icons.js'
import { activity, get, lastRequest, whoAmI } from './lib/api.js'
import { resume, session, signOut } from './lib/session.js'
import { drawWith, emit, on, taste, update } from './lib/store.js'
import { go, link, route, start } from './lib/router.js'
import { rulesIn } from './lib/perms.js'
import { prepare, signIn, signInAgain } from './lib/signin.js'
import { ago, copyText, failure, heading, loading, showAs } from './lib/widgets.js'
import { span } from './lib/format.js'
import { modal, frame } from './lib/dialog.js'
import { palette } from './lib/palette.js'
import { pages } from './pages/index.js'

let phase = 'starting'
let organizations = []
let drawer = false, menu = false, chip = false, background = false
let shown = { key: '', view: null, error: null, ending: null }
const toasts = []

on('toast', t => {
  toasts.push(t)
  update()
  setTimeout(() => { toasts.splice(toasts.indexOf(t), 1); update() }, t.kind === 'ok' ? 4000 : 9000)
})

// --- theme ---

const themes = ['auto', 'light', 'dark']
function applyTheme() {
  const t = taste.get('theme', 'auto')
  if (t === 'auto') document.documentElement.removeAttribute('data-theme')
  else document.documentElement.dataset.theme = t
  emit('theme')
}
applyTheme()
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => emit('theme'))
function nextTheme() {
  taste.set('theme', themes[(themes.indexOf(taste.get('theme', 'auto')) + 1) % themes.length])
  applyTheme()
  update()
}

// --- organizations and pages ---

async function enter() {
  const who = session.who ?? await whoAmI()
  const own = who.users?.[0]?.organization ?? 'default'
  try {
    organizations = (await get('/api/v1/namespaces', { background: true })).items.map(n => n.metadata.name)
  } catch {
    organizations = [own]
  }
  if (!organizations.includes(own)) organizations.unshift(own)
  if (!route.org) go(link(own, 'overview'), { replace: true })
  else if (!route.page) go(link(route.org, 'overview'), { replace: true })
}

function openPage() {
  if (!session.active || !route.page) return
  const key = JSON.stringify([route.org, route.page, route.names])
  if (shown.key === key) return
  shown.ending?.abort()
  const ending = new AbortController()
  const mine = shown = { key, view: null, error: null, ending }
  menu = false
  const page = pages.find(p => p.id === route.page)
  if (!page) { mine.error = new Error('There is no such page.'); return }
  page.load().then(async m => {
    const view = await m.default({ org: route.org, names: route.names, signal: ending.signal })
    if (mine === shown) mine.view = view
  }).catch(e => {
    if (e.name === 'AbortError') return
    mine.error = /import|module/i.test(e.message) ? new Error('The server has another version of the console now. Load the page again.') : e
  }).finally(update)
}

// --- parts of the shell ---

const sections = [...new Set(pages.map(p => p.section))]
const sidebar = () => html`
  <aside class="side ${menu ? 'open' : ''}"><div class="side-in">
    <a class="brand" href=${link(route.org, 'overview')}>${logo()}<span>Freshet</span></a>
    <label class="org"><span class="visually-hidden">Organization</span>
      <select aria-label="Organization" @change=${e => go(link(e.target.value, route.page))}>${[...new Set([route.org, ...organizations])].map(o => html`<option value=${o} ?selected=${o === route.org}>${o}</option>`)}</select></label>
    <nav aria-label="Pages">${sections.map(s => html`${s ? html`<h2>${s}</h2>` : nothing}<ul>${pages.filter(p => p.section === s).map(p => html`
      <li><a href=${link(route.org, p.id)} aria-current=${p.id === route.page ? 'page' : nothing}>${icon(p.id)}<span>${p.title}</span></a></li>`)}</ul>`)}</nav>
  </div></aside>
  ${menu ? html`<button class="scrim" aria-label="Close the menu" @click=${() => { menu = false; update() }}></button>` : nothing}`

const roleWord = () => session.who?.systemAdministrator ? 'System administrator' : session.who?.administrator ? 'Administrator' : rolesHeld() || 'No role'
const rolesHeld = () => {
  const by = [...new Set((rulesIn(route.org)?.rules ?? []).map(r => r.role || r.by).filter(Boolean))]
  return by.length > 1 ? `${by.length} roles` : by[0]
}
const name = () => session.who?.users?.[0]?.name ?? session.who?.principal ?? '…'
const left = () => session.ends === Infinity ? 'until it is revoked' : session.ends ? span((session.ends - Date.now()) / 1000) : 'unknown'

const identity = () => html`
  <div class="chip-wrap"><button class="chip" aria-expanded=${chip} @click=${e => { e.stopPropagation(); chip = !chip; update() }}><span class="avatar" aria-hidden="true">${name()[0]?.toUpperCase()}</span><span class="chip-name">${name()}</span></button>
  ${chip ? html`<div class="pop" @click=${e => e.stopPropagation()}>
    <p><b>${name()}</b><br><span class="muted small">${copyText(session.who?.principal ?? '')}</span></p>
    <dl class="facts tight"><div><dt>Role</dt><dd>${roleWord()}</dd></div><div><dt>Organization</dt><dd>${session.who?.users?.[0]?.organization ?? '–'}</dd></div>
      <div><dt>Token</dt><dd>${left()}${session.ends !== Infinity ? html` <span class="muted">left, renewed by itself</span>` : nothing}</dd></div><div><dt>Kept</dt><dd>${session.kept ? 'for this tab' : 'in memory only'}</dd></div></dl>
    <label class="check"><input type="checkbox" .checked=${taste.get('utc', false)} @change=${e => { taste.set('utc', e.target.checked); emit('times'); update() }}> Times in UTC</label>
    ${session.kind === 'person' ? html`<a class="button wide" href="/oauth/account">${icon('keys', 16)}Your account</a>` : nothing}
    <button class="wide" @click=${() => { chip = false; signOut() }}>${icon('out', 16)}Sign out</button></div>` : nothing}</div>`

const topbar = () => html`
  <header class="top">
    <button class="ghost square only-narrow" aria-label="Menu" aria-expanded=${menu} @click=${() => { menu = !menu; update() }}>${icon('menu')}</button>
    <button class="jump" @click=${() => palette(pages)}>${icon('search', 16)}<span>Jump to…</span><kbd>${/Mac/.test(navigator.platform) ? '⌘' : 'Ctrl'} K</kbd></button>
    <div class="spacer"></div>
    <button class="ghost square" title="Show this page as a command" aria-label="Show as a command" @click=${showCode}>${icon('code')}</button>
    <button class="ghost square" title="Requests of this console" aria-label="Requests" aria-expanded=${drawer} @click=${() => { drawer = !drawer; update() }}>${icon('activity')}</button>
    <button class="ghost square" title=${`Theme: ${taste.get('theme', 'auto')}`} aria-label=${`Theme: ${taste.get('theme', 'auto')}`} @click=${nextTheme}>${icon({ auto: 'auto', light: 'sun', dark: 'moon' }[taste.get('theme', 'auto')])}</button>
    ${identity()}
  </header>`

function showCode() {
  const entry = lastRequest(e => e.at >= (shown.since ?? 0)) ?? lastRequest()
  modal(ctl => frame(ctl, 'The last request as a command', entry ? html`<div class="stack">
    <p class="muted">Made from what this console really sent. <code>$TOKEN</code> is your token, <code>$BASE_URL</code> is <code>${location.origin}</code>.</p>
    <p class="mono small">${entry.method} ${entry.url}</p>${showAs(entry)}</div>` : html`<p>Nothing was asked for yet.</p>`, nothing), { className: 'wide-box' })
}

const activityDrawer = () => drawer ? html`
  <aside class="drawer" aria-label="Requests of this console">
    <header><h2>Requests</h2><label class="check"><input type="checkbox" .checked=${background} @change=${e => { background = e.target.checked; update() }}> in the background too</label>
      <button class="ghost square" aria-label="Close" @click=${() => { drawer = false; update() }}>${icon('x')}</button></header>
    <ul>${activity.filter(e => background || !e.background).slice(0, 80).map(e => html`<li><details>
      <summary><span class="verb">${e.method}</span><span class="path" title=${e.url}>${e.url.replace(/^\/apis\/[^/]+\/v1alpha1\/(namespaces\/)?/, '…/')}</span><span class="badge ${e.status >= 400 || e.error ? 'bad' : 'ok'}">${e.status || (e.ms == null ? '…' : 'failed')}</span><span class="muted small">${e.ms == null ? '' : `${Math.round(e.ms)} ms`}</span></summary>
      <p class="muted small">${ago(e.at)} · request ${copyText(e.requestId ?? e.id)}</p>${e.error ? html`<p class="small">${e.error}</p>` : nothing}${showAs(e)}</details></li>`)}</ul></aside>` : nothing

const view = () => {
  if (shown.error) return html`${heading({ title: 'That did not work' })}${failure(shown.error, () => location.reload())}`
  if (!shown.view) return html`<div class="page-wait">${loading(6)}</div>`
  try {
    return shown.view()
  } catch (e) {
    console.error(e)
    return html`${heading({ title: 'This page has a fault' })}${failure({ message: e.message, advice: 'Load the page again; if it comes back, report it with the text above.' }, () => location.reload())}`
  }
}

function draw() {
  const root = document.getElementById('app')
  if (phase === 'starting') return
  if (root.firstElementChild?.className === 'boot') root.replaceChildren()
  if (!session.active || !session.who) {
    document.title = 'Sign in – Freshet'
    render(signIn(), root)
  } else {
    openPage()
    const page = pages.find(p => p.id === route.page)
    document.title = [route.names.at(-1), page?.title, 'Freshet'].filter(Boolean).join(' – ')
    render(html`<a class="skip" href="#main" @click=${e => { e.preventDefault(); document.getElementById('main').focus() }}>To the content</a>
      ${sidebar()}<div class="body">${topbar()}<main id="main" tabindex="-1">${view()}</main></div>${activityDrawer()}`, root)
  }
  render(html`${session.expired && session.who ? signInAgain() : nothing}
    <div class="toasts" role="status" aria-live="polite">${toasts.map(t => html`<div class="toast ${t.kind}">${icon({ ok: 'check' }[t.kind] ?? 'warn', 16)}<span>${t.text}</span></div>`)}</div>`, document.getElementById('overlays'))
  root.inert = session.expired
  showTab()
  emit('drawn')
}

// Tabs that do not fit are scrolled to the one that is open, and fade where there are more.
let tab = null
function showTab() {
  const list = document.querySelector('.tabs'), now = list?.querySelector('[aria-current]')
  if (!list) return
  if (now && now !== tab) list.scrollLeft = now.offsetLeft - list.offsetLeft - (list.clientWidth - now.offsetWidth) / 2
  tab = now
  list.classList.toggle('before', list.scrollLeft > 4)
  list.classList.toggle('after', list.scrollLeft + list.clientWidth < list.scrollWidth - 4)
}
addEventListener('scroll', e => { if (e.target.classList?.contains('tabs')) showTab() }, { capture: true, passive: true })
addEventListener('resize', () => { tab = null; showTab() })

// --- keys ---

addEventListener('keydown', e => {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName ?? '')
  if ((e.metaKey || e.ctrlKey) && e.key.toLowerCase() === 'k' && session.active) { e.preventDefault(); palette(pages) }
  if (e.key === '/' && !typing && !document.querySelector('dialog[open]')) {
    const f = document.querySelector('[data-filter]')
    if (f) { e.preventDefault(); f.focus(); f.select() }
  }
  if (e.key === 'Escape' && (drawer || menu || chip)) { drawer = menu = chip = false; update() }
})
addEventListener('click', () => { if (chip) { chip = false; update() } })

// A page that the browser keeps for its back button would keep its streams, and with
// them the few connections that there are without HTTP/2.
addEventListener('pagehide', () => shown.ending?.abort())
addEventListener('pageshow', e => { if (e.persisted) { shown.key = ''; update() } })

// --- start ---

drawWith(draw)
on('route', () => { shown.since = Date.now() })
on('signedin', () => enter().catch(e => emit('toast', { kind: 'bad', text: e.message })))
on('signedout', () => { shown.ending?.abort(); shown = { key: '', view: null, error: null, ending: null }; activity.length = 0; prepare() })
on('expired', () => prepare())
start()
let trouble = ''
await resume().catch(e => { trouble = e.message })
if (session.active) await whoAmI().catch(e => { trouble = e.message; return signOut() })
if (!session.active || !session.who) await prepare(trouble)
phase = 'ready'
update()
