// The parts around a page: menu, top bar, account menu, drawer of requests.
import { html, nothing } from './html.js'
import { activity, lastRequest } from './api.js'
import { copyText } from './copy.js'
import { frame, modal } from './dialog.js'
import { duration } from './format.js'
import { icon, logo } from './icons.js'
import { palette } from './palette.js'
import { rulesIn } from './perms.js'
import { go, link, route } from './router.js'
import { session, signOut } from './session.js'
import { emit, preferences, update } from './store.js'
import { currentTheme, nextTheme } from './theme.js'
import { ago } from './timeago.js'
import { requestSnippets } from './widgets.js'

/** Which parts are open. */
export const shell = { menu: false, account: false, drawer: false }
let showBackground = false

export const toggle = key => {
  shell[key] = !shell[key]
  update()
}

/** Closes everything that is open. */
export function closeAll() {
  if (!shell.menu && !shell.account && !shell.drawer) return
  Object.assign(shell, { menu: false, account: false, drawer: false })
  update()
}

// --- menu ---

function organizationSelect(organizations) {
  const all = [...new Set([route.org, ...organizations])]
  return html`
    <label class="org">
      <span class="visually-hidden">Organization</span>
      <select aria-label="Organization" @change=${e => go(link(e.target.value, route.page))}>
        ${all.map(o => html`<option value=${o} ?selected=${o === route.org}>${o}</option>`)}
      </select>
    </label>`
}

const menuItem = p => html`
  <li>
    <a href=${link(route.org, p.id)} aria-current=${p.id === route.page ? 'page' : nothing}>
      ${icon(p.id)}<span>${p.title}</span>
    </a>
  </li>`

export function sidebar(pages, organizations) {
  const sections = [...new Set(pages.map(p => p.section))]
  const section = name => html`
    ${name ? html`<h2>${name}</h2>` : nothing}
    <ul>${pages.filter(p => p.section === name).map(menuItem)}</ul>`
  return html`
    <aside class="side ${shell.menu ? 'open' : ''}">
      <div class="side-in">
        <a class="brand" href=${link(route.org, 'overview')}>${logo()}<span>Freshet</span></a>
        ${organizationSelect(organizations)}
        <nav aria-label="Pages">
          ${sections.map(section)}
          <ul>
            <li><a href="/docs/" target="_blank" rel="noopener">${icon('docs')}<span>Documentation</span></a></li>
          </ul>
        </nav>
      </div>
    </aside>
    ${shell.menu ? html`
      <button class="scrim" aria-label="Close the menu" @click=${() => toggle('menu')}></button>` : nothing}`
}

// --- top bar ---

const modifierKey = /Mac/.test(navigator.platform) ? '⌘' : 'Ctrl'
const themeIcons = { auto: 'auto', light: 'sun', dark: 'moon' }

const squareButton = (name, title, label, onclick, expanded) => html`
  <button class="ghost square" title=${title} aria-label=${label} aria-expanded=${expanded ?? nothing}
    @click=${onclick}>${icon(name)}</button>`

export function topbar(pages) {
  const theme = `Theme: ${currentTheme()}`
  return html`
    <header class="top">
      <button class="ghost square only-narrow" aria-label="Menu" aria-expanded=${shell.menu}
        @click=${() => toggle('menu')}>${icon('menu')}</button>
      <button class="jump" @click=${() => palette(pages)}>
        ${icon('search', 16)}<span>Jump to…</span><kbd>${modifierKey} K</kbd>
      </button>
      <div class="spacer"></div>
      ${squareButton('code', 'Show this page as a command', 'Show as a command', showCommand)}
      ${squareButton('activity', 'Requests of this console', 'Requests', () => toggle('drawer'), shell.drawer)}
      ${squareButton(themeIcons[currentTheme()], theme, theme, nextTheme)}
      ${accountMenu()}
    </header>`
}

let pageOpenedAt = 0

/** Remembers when the page was opened, so that showCommand prefers its requests. */
export const pageOpened = () => { pageOpenedAt = Date.now() }

function showCommand() {
  const entry = lastRequest(e => e.at >= pageOpenedAt) ?? lastRequest()
  const body = () => entry ? html`
    <div class="stack">
      <p class="muted">
        This is a request that the console sent. <code>$TOKEN</code> is your token, <code>$FRESHET_SERVER</code> is
        <code>${location.origin}</code>.
      </p>
      <p class="mono small">${entry.method} ${entry.url}</p>
      ${requestSnippets(entry)}
    </div>` : html`<p>The console has not sent a request yet.</p>`
  modal(ctl => frame(ctl, 'The last request as a command', body(), nothing), { className: 'wide-box' })
}

// --- account menu ---

function roleText() {
  const { identity } = session
  if (identity?.systemAdministrator) return 'System administrator'
  if (identity?.administrator) return 'Administrator'
  const roles = [...new Set((rulesIn(route.org)?.rules ?? []).map(r => r.role || r.by).filter(Boolean))]
  if (roles.length > 1) return `${roles.length} roles`
  return roles[0] ?? 'No role'
}

function tokenText() {
  if (session.expiresAt === Infinity) return 'valid until it is revoked'
  const left = session.expiresAt ? duration((session.expiresAt - Date.now()) / 1000) : 'unknown'
  return html`${left} <span class="muted">left, renewed automatically</span>`
}

const fact = (name, value) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`

function accountMenu() {
  const user = session.identity?.users?.[0]
  const principal = session.identity?.principal
  const name = user?.name ?? principal ?? '…'
  const open = e => {
    e.stopPropagation()
    toggle('account')
  }
  const setUTC = e => {
    preferences.set('utc', e.target.checked)
    emit('times')
    update()
  }
  const leave = () => {
    shell.account = false
    signOut()
  }
  const popover = () => html`
    <div class="pop" @click=${e => e.stopPropagation()}>
      <p><b>${name}</b><br><span class="muted small">${copyText(principal ?? '')}</span></p>
      <dl class="facts tight">
        ${fact('Role', roleText())}
        ${fact('Organization', user?.organization ?? '–')}
        ${fact('Token', tokenText())}
        ${fact('Stored', session.saved ? 'for this tab' : 'in memory only')}
      </dl>
      <label class="check">
        <input type="checkbox" .checked=${preferences.get('utc', false)} @change=${setUTC}> Times in UTC
      </label>
      ${session.kind === 'user' ? html`
        <a class="button wide" href="/oauth/account">${icon('keys', 16)}Your account</a>` : nothing}
      <button class="wide" @click=${leave}>${icon('out', 16)}Sign out</button>
    </div>`
  return html`
    <div class="chip-wrap">
      <button class="chip" aria-expanded=${shell.account} @click=${open}>
        <span class="avatar" aria-hidden="true">${name[0]?.toUpperCase()}</span><span class="chip-name">${name}</span>
      </button>
      ${shell.account ? popover() : nothing}
    </div>`
}

// --- requests ---

function requestView(e) {
  const failed = e.status >= 400 || e.error
  const pending = e.ms == null
  const path = e.url.replace(/^\/apis\/[^/]+\/v1alpha1\/(namespaces\/)?/, '…/')
  return html`
    <li>
      <details>
        <summary>
          <span class="verb">${e.method}</span>
          <span class="path" title=${e.url}>${path}</span>
          <span class="badge ${failed ? 'bad' : 'ok'}">${e.status || (pending ? '…' : 'failed')}</span>
          <span class="muted small">${pending ? '' : `${Math.round(e.ms)} ms`}</span>
        </summary>
        <p class="muted small">${ago(e.at)} · request ${copyText(e.requestId ?? e.id)}</p>
        ${e.error ? html`<p class="small">${e.error}</p>` : nothing}
        ${requestSnippets(e)}
      </details>
    </li>`
}

/** The drawer with the last requests. */
export function requestDrawer() {
  if (!shell.drawer) return nothing
  const setBackground = e => {
    showBackground = e.target.checked
    update()
  }
  const entries = activity.filter(e => showBackground || !e.background).slice(0, 80)
  return html`
    <aside class="drawer" aria-label="Requests of this console">
      <header>
        <h2>Requests</h2>
        <label class="check">
          <input type="checkbox" .checked=${showBackground} @change=${setBackground}> with background requests
        </label>
        <button class="ghost square" aria-label="Close" @click=${() => toggle('drawer')}>${icon('x')}</button>
      </header>
      <ul>${entries.map(requestView)}</ul>
    </aside>`
}
