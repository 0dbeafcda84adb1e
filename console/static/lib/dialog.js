// Dialogs are the browser's own: focus stays inside, Escape closes, what is behind
// cannot be reached.
import { html, render, nothing } from './html.js'
import { on, emit } from './store.js'
import { icon } from './icons.js'

/**
 * Shows a dialog until ctl.close(value) is called or it is dismissed (undefined).
 * view(ctl) is rendered again whenever the page is, or by ctl.update().
 * @param {(ctl: {close: (v?: any) => void, update: () => void, signal: AbortSignal}) => any} view
 */
export function modal(view, { className = '', dismissable = true } = {}) {
  return new Promise(resolve => {
    const d = document.createElement('dialog')
    const ending = new AbortController()
    d.className = className
    d.tabIndex = -1
    const ctl = {
      signal: ending.signal,
      update: () => { if (!ending.signal.aborted) render(view(ctl), d) },
      close: value => { if (ending.signal.aborted) return; ending.abort(); d.close(); d.remove(); resolve(value) },
    }
    d.addEventListener('cancel', e => { e.preventDefault(); if (dismissable) ctl.close() })
    d.addEventListener('mousedown', e => { if (e.target === d && dismissable) ctl.close() })
    document.body.append(d)
    ctl.update()
    d.showModal()
    ;(d.querySelector('[autofocus]') ?? d.querySelector('.modal-body :is(input, select, textarea):not(:disabled)') ?? d).focus()
    on('drawn', ctl.update, ending.signal)
    on('signedout', () => ctl.close(), ending.signal)
  })
}

/** The usual frame: title, body, buttons at the foot. */
export const frame = (ctl, title, body, foot, o = {}) => html`
  <form class="modal" method="dialog" @submit=${e => { e.preventDefault(); o.submit?.(e) }}>
    <header><h2>${title}</h2><button type="button" class="ghost square" aria-label="Close" @click=${() => ctl.close()}>${icon('x')}</button></header>
    <div class="modal-body">${body}</div>
    ${foot && foot !== nothing ? html`<footer>${foot}</footer>` : nothing}
  </form>`

/** Asks for a yes, by typing the name where it cannot be undone. */
export function confirm({ title, text, action = 'Delete', name = '', run }) {
  let typed = '', busy = false, error = null
  return modal(ctl => frame(ctl, title, html`
    <div class="stack">${typeof text === 'string' ? html`<p>${text}</p>` : text}
    ${name ? html`<label class="field"><span>Type <b class="mono">${name}</b> to confirm</span>
      <input autofocus autocomplete="off" spellcheck="false" @input=${e => { typed = e.target.value; ctl.update() }}></label>` : nothing}
    ${error ? html`<p class="callout bad" role="alert"><b>${error.message}</b> ${error.advice ?? ''}</p>` : nothing}</div>`,
  html`<button type="button" @click=${() => ctl.close()}>Cancel</button>
    <button class="danger" ?disabled=${busy || (name && typed !== name)}>${busy ? 'Working…' : action}</button>`,
  { submit: async () => {
    if (name && typed !== name) return
    busy = true
    error = null
    ctl.update()
    try { await run?.(); ctl.close(true) } catch (e) { error = e; busy = false; ctl.update() }
  } }))
}

/** A line that goes by itself; errors stay a little longer. */
export const toast = (text, kind = 'ok') => emit('toast', { text, kind })
