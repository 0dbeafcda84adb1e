// Dialogs use the dialog element of the browser, which keeps the focus inside, closes on
// Escape, and blocks the page behind it.
import { html, render, nothing } from './html.js'
import { on, emit } from './store.js'
import { icon } from './icons.js'
import { failure } from './widgets.js'

/**
 * Shows a dialog until ctl.close(value) is called or the user dismisses it (undefined).
 * view(ctl) is rendered again with the page, and by ctl.update().
 * @param {(ctl: {close: (v?: any) => void, update: () => void, signal: AbortSignal}) => any} view
 */
export function modal(view, { className = '', dismissable = true } = {}) {
  return new Promise(resolve => {
    const dialog = document.createElement('dialog')
    const closing = new AbortController()
    dialog.className = className
    dialog.tabIndex = -1
    const ctl = {
      signal: closing.signal,
      update: () => {
        if (!closing.signal.aborted) render(view(ctl), dialog)
      },
      close: value => {
        if (closing.signal.aborted) return
        closing.abort()
        dialog.close()
        dialog.remove()
        resolve(value)
      },
    }
    dialog.addEventListener('cancel', e => {
      e.preventDefault()
      if (dismissable) ctl.close()
    })
    dialog.addEventListener('mousedown', e => {
      if (e.target === dialog && dismissable) ctl.close()
    })
    document.body.append(dialog)
    ctl.update()
    dialog.showModal()
    const first = dialog.querySelector('[autofocus]') ??
      dialog.querySelector('.modal-body :is(input, select, textarea):not(:disabled)') ?? dialog
    first.focus()
    on('drawn', ctl.update, closing.signal)
    on('signedout', () => ctl.close(), closing.signal)
  })
}

/** The frame of a dialog: title, body, and buttons in the footer. */
export function frame(ctl, title, body, footer, o = {}) {
  const submit = e => {
    e.preventDefault()
    o.submit?.(e)
  }
  return html`
    <form class="modal" method="dialog" @submit=${submit}>
      <header>
        <h2>${title}</h2>
        <button type="button" class="ghost square" aria-label="Close" @click=${() => ctl.close()}>${icon('x')}</button>
      </header>
      <div class="modal-body">${body}</div>
      ${footer && footer !== nothing ? html`<footer>${footer}</footer>` : nothing}
    </form>`
}

const cancelButton = ctl => html`<button type="button" @click=${() => ctl.close()}>Cancel</button>`

/** Asks for a confirmation. If name is given, the user has to type it. */
export function confirm({ title, text, action = 'Delete', name = '', run }) {
  let typed = ''
  let busy = false
  let error = null
  const submit = async ctl => {
    if (name && typed !== name) return
    busy = true
    error = null
    ctl.update()
    try {
      await run?.()
      ctl.close(true)
    } catch (e) {
      error = e
      busy = false
      ctl.update()
    }
  }
  const nameField = ctl => html`
    <label class="field">
      <span>Type <b class="mono">${name}</b> to confirm</span>
      <input autofocus autocomplete="off" spellcheck="false" @input=${e => {
        typed = e.target.value
        ctl.update()
      }}>
    </label>`
  const body = ctl => html`
    <div class="stack">
      ${typeof text === 'string' ? html`<p>${text}</p>` : text}
      ${name ? nameField(ctl) : nothing}
      ${error ? html`<p class="callout bad" role="alert"><b>${error.message}</b> ${error.advice ?? ''}</p>` : nothing}
    </div>`
  const buttons = ctl => html`
    ${cancelButton(ctl)}
    <button class="danger" ?disabled=${busy || (name && typed !== name)}>${busy ? 'Working…' : action}</button>`
  return modal(ctl => frame(ctl, title, body(ctl), buttons(ctl), { submit: () => submit(ctl) }))
}

/** A form in a dialog. If run(values) throws, the error is shown and the dialog stays open. */
export function formDialog({ title, values = {}, view, run, action = 'Create', kind = 'primary', wide }) {
  let busy = false
  let error = null
  const submit = async (e, ctl) => {
    if (!e.target.reportValidity()) return
    busy = true
    error = null
    ctl.update()
    try {
      ctl.close((await run(values)) ?? true)
    } catch (err) {
      error = err
      busy = false
      ctl.update()
    }
  }
  const body = ctl => html`<div class="stack">${failure(error)}${view(values, ctl)}</div>`
  const buttons = ctl => html`
    ${cancelButton(ctl)}
    <button class=${kind} ?disabled=${busy}>${busy ? 'Working…' : action}</button>`
  return modal(ctl => frame(ctl, title, body(ctl), buttons(ctl), { submit: e => submit(e, ctl) }),
    { className: wide ? 'wide-box' : '' })
}

/** Shows a short message that disappears; errors stay longer. */
export const toast = (text, kind = 'ok') => emit('toast', { text, kind })
