// The parts that pages are made of.
import { html, nothing, svg } from './html.js'
import { icon } from './icons.js'
import { absolute, relative, short } from './format.js'
import { taste, update, on } from './store.js'
import { missing } from './perms.js'
import { forms } from './snippets.js'
import { link, setQuery, route } from './router.js'

/** A time that goes on by itself, absolute on hover. <time-ago .time=${…}> */
class TimeAgo extends HTMLElement {
  static all = new Set()
  connectedCallback() { TimeAgo.all.add(this); this.show() }
  disconnectedCallback() { TimeAgo.all.delete(this) }
  set time(t) { this.at = t; this.show() }
  show() {
    const text = this.at ? taste.get('utc', false) ? absolute(this.at, true) : relative(this.at) : '–'
    if (this.textContent !== text) this.textContent = text
    const title = this.at ? `${absolute(this.at)} (${absolute(this.at, true)})` : ''
    if (this.title !== title) this.title = title
  }
}
customElements.define('time-ago', TimeAgo)
const tick = () => TimeAgo.all.forEach(e => e.show())
setInterval(tick, 1000)
on('times', tick)
export const ago = time => html`<time-ago .time=${time}></time-ago>`

/** Copies text, and says so. */
export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text)
  } catch { // no secure context
    const area = document.createElement('textarea')
    area.value = text
    document.body.append(area)
    area.select()
    document.execCommand('copy')
    area.remove()
  }
  if (!button) return
  button.classList.add('done')
  button.setAttribute('aria-label', 'Copied')
  setTimeout(() => { button.classList.remove('done'); button.setAttribute('aria-label', 'Copy') }, 1200)
}

const copyButton = text => html`<button type="button" class="ghost square copy" aria-label="Copy" title="Copy" @click=${e => { e.preventDefault(); e.stopPropagation(); copy(typeof text === 'function' ? text() : text, e.currentTarget) }}>${icon('copy', 16)}${icon('check', 16)}</button>`

/** A value to copy, in one line. */
export const copyField = (value, shown = value) => html`<span class="copy-field"><code title=${value}>${shown}</code>${copyButton(value)}</span>`
/** A short id in running text. */
export const copyText = value => html`<span class="copy-text">${value}${copyButton(value)}</span>`
/** A long id that means nothing to people. */
export const copyId = value => html`<span class="copy-text"><span class="mono small">${value}</span>${copyButton(value)}</span>`
/** A block of code; "wrap" for what has no lines of its own, a token or a link. */
export const codeBlock = (text, label = 'Code', kind = '') => html`<div class="code ${kind}"><pre tabindex="0" aria-label=${label}>${text}</pre>${copyButton(text)}</div>`

export const badge = (kind, text, title = '') => html`<span class="badge ${kind}" title=${title || nothing}>${text}</span>`

/** A reason of the API as people write: NotInvited becomes Not invited. */
const inWords = (reason = '') => reason.replace(/([a-z])([A-Z])(?=[a-z])/g, (_, a, b) => `${a} ${b.toLowerCase()}`)

/** The state of an object in one word: its Ready or Issued condition, or its end. */
export function stateOf(o) {
  if (o.metadata.deletionTimestamp) return ['warn', 'Deleting', 'waits for: ' + (o.metadata.finalizers ?? []).join(', ')]
  const list = o.status?.conditions ?? []
  const c = list.find(c => c.type === 'Ready') ?? list.find(c => c.type === 'Issued')
  if (!c) return ['', 'No status', '']
  if (c.status === 'True') return ['ok', c.type, c.message ?? '']
  return [/Provisioning|Updating|Pending|Deploy|^(Not)?Invited$/.test(c.reason) ? 'warn' : 'bad', inWords(c.reason) || 'Not ready', c.message ?? '']
}
export const state = o => badge(...stateOf(o))

/** Conditions as a line through time, newest below, and the service's steps behind it. */
export function timeline(o, events = []) {
  const steps = [
    { at: o.metadata.creationTimestamp, kind: '', title: 'Created', text: '' },
    ...(o.status?.conditions ?? []).map(c => ({
      at: c.lastTransitionTime, kind: c.status === 'True' ? /^(Expired|Revoked)$/.test(c.type) ? 'bad' : 'ok' : /^(Expired|Revoked)$/.test(c.type) ? 'ok' : c.status === 'False' ? 'bad' : 'warn',
      title: c.type, mark: c.status, text: [c.reason, c.message].filter(Boolean).join(': '),
    })),
    ...(o.metadata.deletionTimestamp ? [{ at: o.metadata.deletionTimestamp, kind: 'warn', title: 'Deletion asked for', text: 'Waits for ' + (o.metadata.finalizers ?? []).join(', ') }] : []),
  ].sort((a, b) => Date.parse(a.at ?? 0) - Date.parse(b.at ?? 0))
  return html`<ol class="timeline">${steps.map(s => html`<li class=${s.kind}><div class="when">${ago(s.at)}</div>
    <div><b>${s.title}</b>${s.mark ? html` <span class="muted">${s.mark}</span>` : nothing}${s.count > 1 ? html` <span class="muted">× ${s.count}</span>` : nothing}${s.text ? html`<p>${s.text}</p>` : nothing}</div></li>`)}</ol>
    ${events.length ? html`<details class="more"><summary class="muted small">${events.length} ${events.length === 1 ? 'step' : 'steps'} of the service</summary><ul class="steps-taken">${events.map(e => html`<li><span class="muted small">${ago(e.deprecatedLastTimestamp ?? e.metadata.creationTimestamp)}</span><span><b>${e.reason}</b>${e.deprecatedCount > 1 ? ` × ${e.deprecatedCount}` : ''} ${e.note}</span></li>`)}</ul></details>` : nothing}`
}

/**
 * A button. With a permission it is greyed out for those who lack it, and says which
 * one is missing.
 */
export function button(label, o) {
  const why = o.permission ? missing(o.org ?? route.org, o.permission) : ''
  return html`<button type=${o.type ?? 'button'} class=${o.kind ?? ''} ?disabled=${!!o.disabled} aria-disabled=${why ? 'true' : nothing} title=${why || o.title || nothing}
    aria-label=${o.label ?? nothing} @click=${e => { if (why) { e.preventDefault(); e.stopPropagation() } else o.onclick?.(e) }}>${o.icon ? icon(why ? 'lock' : o.icon, 16) : nothing}${label}</button>`
}

/** The head of a page. */
export const heading = ({ title, sub, crumbs = [], actions, badge: mark }) => html`
  <header class="page-head">
    ${crumbs.length ? html`<nav class="crumbs" aria-label="Path">${crumbs.map(([text, href]) => html`<a href=${href}>${text}</a>${icon('chevron', 14)}`)}</nav>` : nothing}
    <div class="page-title"><h1>${title}</h1>${mark ?? nothing}</div>
    ${sub ? html`<p class="sub">${sub}</p>` : nothing}
    ${actions ? html`<div class="actions">${actions}</div>` : nothing}
  </header>`

/** Nothing here yet: what it is, one button, the same as a command, one link. */
export const empty = ({ title, text, action, command, href, more = 'Read more', icon: name = 'empty' }) => html`
  <div class="empty"><div class="empty-icon">${icon(name, 28)}</div><h2>${title}</h2><p>${text}</p>
    ${action ?? nothing}${command ? codeBlock(command, 'The same as a command', 'wrap') : nothing}${href ? html`<a href=${href}>${more}</a>` : nothing}</div>`

/** Something may be here, and the role does not let us see it. */
export const denied = (what, error, permission = '') => html`
  <div class="empty denied"><div class="empty-icon">${icon('lock', 28)}</div><h2>You may not see ${what}</h2>
    <p>${error?.message ?? 'The role does not allow it.'}</p>
    ${error?.status === 401 && !/lacks permission/.test(error.message) ? html`<p class="muted">${error.advice}</p>` : html`<p class="muted">${permission ? html`The missing permission is <code>${permission}</code>. ` : nothing}An administrator of the organization can give you a role that has it.</p>`}
    ${error?.requestId ? html`<p class="muted small">Request ${copyText(error.requestId)}</p>` : nothing}</div>`

/** An error with the server's reason, the request id and what to try. */
export const failure = (error, retry) => error ? html`
  <div class="callout bad" role="alert"><div><b>${error.message}</b>
    ${error.causes?.length ? html`<ul>${error.causes.map(c => html`<li>${c.field ? html`<code>${c.field}</code> ` : nothing}${c.message}</li>`)}</ul>` : nothing}
    <p>${error.advice ?? ''}</p>
    <p class="muted small">${[error.status || '', error.reason].filter(Boolean).join(' ')}${error.requestId ? html` · request ${copyText(error.requestId)}` : nothing}</p></div>
    ${retry ? html`<button type="button" @click=${retry}>${icon('refresh', 16)}Try again</button>` : nothing}</div>` : nothing

export const loading = (rows = 4) => html`<div class="skeleton" role="status" aria-label="Loading">${Array.from({ length: rows }, () => html`<div></div>`)}</div>`

/** What a live list is in: loading, denied, failed, or what show() makes of it. */
export function listed(list, what, permission, show) {
  if (list.state === 'loading') return loading()
  if (list.state === 'denied') return denied(what, list.error, permission)
  if (list.state === 'failed') return failure(list.error)
  if (!list.loaded) return html`${failure(list.error)}${loading()}`
  return show(list.items)
}

/** A mark that says how current a list is. */
export const liveMark = list => html`<span class="live ${list.state}" title=${{ live: 'Changes appear by themselves', polling: 'Asked for every few seconds', waiting: 'The server is away; trying again' }[list.state] ?? ''}>${{ live: 'Live', polling: 'Every 4 s', waiting: 'Reconnecting', loading: 'Loading' }[list.state] ?? ''}</span>`

/** Tabs of a page; the tab is in the URL. */
export const tabs = (list, key = 'tab') => {
  const now = tabOf(list, key)
  return html`<nav class="tabs" aria-label="Views">${list.map(([id, text, n]) => html`<a href=${link(route.org, route.page, route.names, { [key]: id === list[0][0] ? '' : id })} aria-current=${id === now ? 'page' : nothing}
    @click=${e => { e.preventDefault(); setQuery({ [key]: id === list[0][0] ? '' : id }) }}>${text}${n != null ? html`<span class="count">${n}</span>` : nothing}</a>`)}</nav>`
}
export const tabOf = (list, key = 'tab') => list.some(t => t[0] === route.query.get(key)) ? route.query.get(key) : list[0][0]

/** A labelled control. */
export const field = (label, control, hint = '') => html`<label class="field"><span>${label}</span>${control}${hint ? html`<small>${hint}</small>` : nothing}</label>`

/** Names and values. */
export const facts = list => html`<dl class="facts">${list.filter(Boolean).map(([k, v]) => html`<div><dt>${k}</dt><dd>${v ?? '–'}</dd></div>`)}</dl>`

/** A request as curl, kubectl and freshet. */
export function showAs(entry, chosen = taste.get('form', 'curl')) {
  const all = forms(entry)
  const now = all.find(f => f[0] === chosen) ?? all[0]
  return html`<div class="show-as"><div class="seg" role="group" aria-label="Show as">${all.map(([name]) => html`<button type="button" aria-pressed=${name === now[0]} @click=${() => { taste.set('form', name); update() }}>${name}</button>`)}</div>
    ${codeBlock(now[1], now[0])}</div>`
}

/** A small plot of the last values, without axes; the text beside it says the number. */
export function spark(values, { width = 160, height = 40, max } = {}) {
  const list = values.length > 1 ? values : [0, 0]
  const top = Math.max(max ?? 0, ...list, 1e-9)
  const at = (v, i) => `${(i / (list.length - 1) * width).toFixed(1)} ${(height - 2 - v / top * (height - 6)).toFixed(1)}`
  const line = 'M' + list.map(at).join('L')
  return html`<svg class="spark" viewBox="0 0 ${width} ${height}" preserveAspectRatio="none" role="img" aria-label=${`last ${short(list.at(-1))}, highest ${short(Math.max(...list))}`}>
    ${svg`<path class="area" d=${`${line}L${width} ${height}L0 ${height}Z`}/><path class="line" d=${line}/>`}</svg>`
}

/** Saves text as a file. */
export function download(name, text, type = 'application/json') {
  const a = document.createElement('a')
  a.href = URL.createObjectURL(new Blob([text], { type }))
  a.download = name
  a.click()
  setTimeout(() => URL.revokeObjectURL(a.href), 10000)
}

/** A place to drop a file, or to choose one. */
export const dropZone = (text, accept, take) => html`<label class="drop" @dragover=${e => { e.preventDefault(); e.currentTarget.classList.add('over') }} @dragleave=${e => e.currentTarget.classList.remove('over')}
  @drop=${async e => { e.preventDefault(); e.currentTarget.classList.remove('over'); const f = e.dataTransfer.files[0]; if (f) take(await f.text(), f.name) }}>
  ${icon('down', 20)}<span>${text}</span><input type="file" class="visually-hidden" accept=${accept} @change=${async e => { const f = e.target.files[0]; if (f) take(await f.text(), f.name); e.target.value = '' }}></label>`
