// Values that the user can copy.
import { html } from './html.js'
import { icon } from './icons.js'

/** Copies text to the clipboard, and shows on the button that it was copied. */
export async function copy(text, button) {
  try {
    await navigator.clipboard.writeText(text)
  } catch { // the clipboard API needs HTTPS or localhost
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
  setTimeout(() => {
    button.classList.remove('done')
    button.setAttribute('aria-label', 'Copy')
  }, 1200)
}

function copyButton(text) {
  const onclick = e => {
    e.preventDefault()
    e.stopPropagation()
    copy(typeof text === 'function' ? text() : text, e.currentTarget)
  }
  return html`<button type="button" class="ghost square copy" aria-label="Copy" title="Copy"
    @click=${onclick}>${icon('copy', 16)}${icon('check', 16)}</button>`
}

/** A value to copy, on one line. */
export const copyField = (value, shown = value) =>
  html`<span class="copy-field"><code title=${value}>${shown}</code>${copyButton(value)}</span>`

/** A short value to copy, within running text. */
export const copyText = value => html`<span class="copy-text">${value}${copyButton(value)}</span>`

/** A long id to copy, in small print. */
export const copyId = value =>
  html`<span class="copy-text"><span class="mono small">${value}</span>${copyButton(value)}</span>`

/** A block of code. Kind "wrap" breaks long lines, for a token or a link; "tall" uses the height of the window. */
export const codeBlock = (text, label = 'Code', kind = '') => html`
  <div class="code ${kind}"><pre tabindex="0" aria-label=${label}>${text}</pre>${copyButton(text)}</div>`
