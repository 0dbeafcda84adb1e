// Form controls that are bound to a key of an object, and their labels.
import { html, nothing } from './html.js'

/** A control with a label and an optional hint. */
export const field = (label, control, hint = '') => html`
  <label class="field"><span>${label}</span>${control}${hint ? html`<small>${hint}</small>` : nothing}</label>`

/** A text input that is bound to values[key]. */
export function input(values, key, ctl, o = {}) {
  const oninput = e => {
    values[key] = e.target.value
    ctl.update()
  }
  return html`<input name=${key} type=${o.type ?? 'text'} .value=${values[key] ?? ''}
    ?required=${o.required} pattern=${o.pattern ?? nothing} min=${o.min ?? nothing} max=${o.max ?? nothing}
    maxlength=${o.maxlength ?? nothing} placeholder=${o.placeholder ?? nothing} title=${o.title ?? nothing}
    ?autofocus=${o.autofocus} autocomplete="off" spellcheck="false" @input=${oninput}>`
}

/** A select that is bound to values[key]. Options are [id, text]; the text defaults to the id. */
export function select(values, key, ctl, options) {
  const onchange = e => {
    values[key] = e.target.value
    ctl.update()
  }
  return html`<select name=${key} @change=${onchange}>${options.map(([id, text]) => html`
    <option value=${id} ?selected=${values[key] === id}>${text ?? id}</option>`)}</select>`
}

/** A checkbox that is bound to values[key]. */
export function checkbox(values, key, ctl, label, hint = '') {
  const onchange = e => {
    values[key] = e.target.checked
    ctl.update()
  }
  return html`
    <label class="check">
      <input type="checkbox" name=${key} .checked=${!!values[key]} @change=${onchange}>
      ${label} ${hint ? html`<small>${hint}</small>` : nothing}
    </label>`
}

/** A multi-line input that is bound to values[key]. */
export function textArea(values, key, o = {}) {
  const oninput = e => {
    values[key] = e.target.value
    o.oninput?.()
  }
  return html`
    <textarea name=${o.name ?? key} rows=${o.rows ?? 3} spellcheck="false" placeholder=${o.placeholder ?? nothing}
      aria-label=${o.label ?? nothing} ?required=${o.required} .value=${values[key]} @input=${oninput}></textarea>`
}

/** A row of buttons of which one is pressed. */
export const choice = (chosen, options, choose, label, className = '') => html`
  <div class="seg ${className}" role="group" aria-label=${label}>${options.map(([id, text]) => html`
    <button type="button" aria-pressed=${id === chosen} @click=${() => choose(id)}>${text ?? id}</button>`)}</div>`

/** Parses lines "name=value" into an object. */
export function readPairs(text) {
  const out = {}
  for (const line of text.split('\n')) {
    if (!line.trim()) continue
    const i = line.indexOf('=')
    if (i < 1) throw new Error(`“${line.trim()}” is not name=value. Write one pair per line.`)
    out[line.slice(0, i).trim()] = line.slice(i + 1).trim()
  }
  return out
}

export const namePattern = '[a-z0-9]([a-z0-9.\\-]*[a-z0-9])?'
export const nameTitle = 'Lowercase letters, digits, dots and dashes; starts and ends with a letter or digit'
