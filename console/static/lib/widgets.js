// The building blocks of pages.
import { html, nothing, svg } from './html.js'
import { codeBlock, copyText } from './copy.js'
import { choice } from './fields.js'
import { icon } from './icons.js'
import { short } from './format.js'
import { preferences, update } from './store.js'
import { missingPermission } from './perms.js'
import { snippets } from './snippets.js'
import { link, setQuery, route } from './router.js'

export const badge = (kind, text, title = '') =>
  html`<span class="badge ${kind}" title=${title || nothing}>${text}</span>`

/**
 * A button. With a permission it is disabled for callers who lack it, and its tooltip
 * names the missing permission.
 */
export function button(label, o) {
  const why = o.permission ? missingPermission(o.org ?? route.org, o.permission) : ''
  const onclick = e => {
    if (!why) {
      o.onclick?.(e)
      return
    }
    e.preventDefault()
    e.stopPropagation()
  }
  return html`<button type=${o.type ?? 'button'} class=${o.kind ?? ''} ?disabled=${!!o.disabled}
    aria-disabled=${why ? 'true' : nothing} title=${why || o.title || nothing} aria-label=${o.label ?? nothing}
    @click=${onclick}>${o.icon ? icon(why ? 'lock' : o.icon, 16) : nothing}${label}</button>`
}

/** The head of a page. */
export const heading = ({ title, sub, crumbs = [], actions, badge: status }) => html`
  <header class="page-head">
    ${crumbs.length ? html`<nav class="crumbs" aria-label="Path">${crumbs.map(([text, href]) => html`
      <a href=${href}>${text}</a>${icon('chevron', 14)}`)}</nav>` : nothing}
    <div class="page-title"><h1>${title}</h1>${status ?? nothing}</div>
    ${sub ? html`<p class="sub">${sub}</p>` : nothing}
    ${actions ? html`<div class="actions">${actions}</div>` : nothing}
  </header>`

/** The view of an empty list: what it is for, a button, the command that does the same, and a link. */
export const empty = ({ title, text, action, command, href, more = 'Read more', icon: name = 'empty' }) => html`
  <div class="empty">
    <div class="empty-icon">${icon(name, 28)}</div>
    <h2>${title}</h2>
    <p>${text}</p>
    ${action ?? nothing}
    ${command ? codeBlock(command, 'Command', 'wrap') : nothing}
    ${href ? html`<a href=${href}>${more}</a>` : nothing}
  </div>`

const deniedAdvice = (error, permission) =>
  error?.status === 401 && !/lacks permission/.test(error.message)
    ? html`<p class="muted">${error.advice}</p>`
    : html`<p class="muted">
        ${permission ? html`The missing permission is <code>${permission}</code>.` : nothing}
        Ask an administrator of the organization for a role that has it.
      </p>`

/** The view of something that the caller has no permission to see. */
export const denied = (what, error, permission = '') => html`
  <div class="empty denied">
    <div class="empty-icon">${icon('lock', 28)}</div>
    <h2>You do not have access to ${what}</h2>
    <p>${error?.message ?? 'Your role does not allow it.'}</p>
    ${deniedAdvice(error, permission)}
    ${error?.requestId ? html`<p class="muted small">Request ${copyText(error.requestId)}</p>` : nothing}
  </div>`

const cause = c => html`<li>${c.field ? html`<code>${c.field}</code> ` : nothing}${c.message}</li>`

/** An error with the server's reason, the request id and advice. */
export function failure(error, retry) {
  if (!error) return nothing
  const request = error.requestId ? html` · request ${copyText(error.requestId)}` : nothing
  return html`
    <div class="callout bad" role="alert">
      <div>
        <b>${error.message}</b>
        ${error.causes?.length ? html`<ul>${error.causes.map(cause)}</ul>` : nothing}
        <p>${error.advice ?? ''}</p>
        <p class="muted small">${[error.status || '', error.reason].filter(Boolean).join(' ')}${request}</p>
      </div>
      ${retry ? html`<button type="button" @click=${retry}>${icon('refresh', 16)}Try again</button>` : nothing}
    </div>`
}

export const loading = (rows = 4) => html`
  <div class="skeleton" role="status" aria-label="Loading">
    ${Array.from({ length: rows }, () => html`<div></div>`)}
  </div>`

/** The view of a live list: loading, denied, failed, or show(items). */
export function listView(list, what, permission, show) {
  if (list.state === 'loading') return loading()
  if (list.state === 'denied') return denied(what, list.error, permission)
  if (list.state === 'failed') return failure(list.error)
  if (!list.loaded) return html`${failure(list.error)}${loading()}`
  return show(list.items)
}

/**
 * The page of an object that is not there: still loading, denied, or deleted.
 * @param {{title: string, crumbs: any[], denied: string, permission: string, empty: object}} o
 */
export function missingObject(list, o) {
  const head = heading({ title: o.title, crumbs: o.crumbs })
  if (list.state === 'denied') return html`${head}${denied(o.denied, list.error, o.permission)}`
  if (list.state === 'loading') return html`${head}${loading()}`
  return html`${head}${empty(o.empty)}`
}

const liveStates = {
  live: ['Live', 'The list updates automatically'],
  polling: ['Every 4 s', 'The list is refreshed every 4 seconds'],
  waiting: ['Reconnecting', 'The server is unreachable; the console retries'],
  loading: ['Loading', ''],
}

/** Shows whether a list is up to date. */
export function liveIndicator(list) {
  const [text, title] = liveStates[list.state] ?? ['', '']
  return html`<span class="live ${list.state}" title=${title}>${text}</span>`
}

/** The tabs of a page: [id, text, count]. The chosen one is in the URL. */
export function tabs(list, key = 'tab') {
  const chosen = tabOf(list, key)
  return html`<nav class="tabs" aria-label="Views">${list.map(([id, text, n]) => {
    const query = { [key]: id === list[0][0] ? '' : id }
    const onclick = e => {
      e.preventDefault()
      setQuery(query)
    }
    return html`
      <a href=${link(route.org, route.page, route.names, query)} aria-current=${id === chosen ? 'page' : nothing}
        @click=${onclick}>${text}${n != null ? html`<span class="count">${n}</span>` : nothing}</a>`
  })}</nav>`
}

/** The id of the chosen tab. */
export const tabOf = (list, key = 'tab') =>
  list.some(t => t[0] === route.query.get(key)) ? route.query.get(key) : list[0][0]

/** A list of names and values. */
export const facts = list => html`
  <dl class="facts">${list.filter(Boolean).map(([name, value]) => html`
    <div><dt>${name}</dt><dd>${value ?? '–'}</dd></div>`)}</dl>`

/** Large numbers with a name: [name, value, tooltip]. */
export const numbers = list => html`
  <div class="stats slim">${list.map(([name, value, title]) => html`
    <div class="card stat" title=${title ?? nothing}><span>${name}</span><b>${value}</b></div>`)}</div>`

/** A recorded request as commands and programs. */
export function requestSnippets(entry) {
  const all = snippets(entry)
  const shown = all.find(f => f[0] === preferences.get('form', 'curl')) ?? all[0]
  const choose = name => {
    preferences.set('form', name)
    update()
  }
  return html`
    <div class="show-as">
      ${choice(shown[0], all.map(([name]) => [name]), choose, 'Show as')}
      ${codeBlock(shown[1], shown[0])}
    </div>`
}

/** A small plot of the last values, without axes; the label has the numbers. */
export function sparkline(values, { width = 160, height = 40, max } = {}) {
  const list = values.length > 1 ? values : [0, 0]
  const top = Math.max(max ?? 0, ...list, 1e-9)
  const x = i => (i / (list.length - 1) * width).toFixed(1)
  const y = v => (height - 2 - v / top * (height - 6)).toFixed(1)
  const line = 'M' + list.map((v, i) => `${x(i)} ${y(v)}`).join('L')
  const area = `${line}L${width} ${height}L0 ${height}Z`
  return html`
    <svg class="spark" viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img"
      aria-label=${`last ${short(list.at(-1))}, highest ${short(Math.max(...list))}`}>
      ${svg`<path class="area" d=${area}/><path class="line" d=${line}/>`}
    </svg>`
}
