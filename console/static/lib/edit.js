// A change of an object: by a form of what people change, or as YAML. The server says
// what it would make of it before anything is saved.
import { html, nothing } from './html.js'
import { call, get, resource } from './api.js'
import { changed, diffView, textDiff } from './diff.js'
import { frame, modal, toast } from './dialog.js'
import { withoutBookkeeping } from './format.js'
import { forms, labelsField, labelsOf, writeLabels } from './forms.js'
import { mergePatch } from './patch.js'
import { choice } from './plane.js'
import { failure, loading } from './widgets.js'

const yaml = 'application/yaml'
const patchType = 'application/merge-patch+json'

export async function edit(org, plural, name) {
  const path = resource(org, plural, name), kind = forms[plural]
  let way = kind ? 'form' : 'yaml', step = 'load', error = null, diff = null
  let before = '', text = '', object = null, values = null, known = null
  const load = async ctl => {
    try {
      [before, object, known] = await Promise.all([get(path, { accept: yaml, background: true }).then(t => withoutBookkeeping(t, false)), get(path), kind?.known?.(org)])
      text = before
      if (kind) values = { ...kind.read(object), labels: labelsOf(object) }
      step = 'write'
    } catch (e) { error = e }
    ctl.update()
    ctl.focus()
  }
  /** What is sent: the whole text, or what the form changes and the version that it was read at. */
  const request = () => {
    if (way === 'yaml') return ['PUT', text, yaml]
    const after = structuredClone(object)
    kind.write(values, after)
    writeLabels(values.labels, after)
    const patch = mergePatch(object, after)
    return patch && ['PATCH', { ...patch, metadata: { ...patch.metadata, resourceVersion: object.metadata.resourceVersion } }, patchType]
  }
  const send = (dry, o = {}) => {
    const [method, body, contentType] = request()
    return call(method, `${path}?${dry ? 'dryRun=All&' : ''}fieldManager=freshet-console&fieldValidation=Strict`, { body, contentType, ...o })
  }
  const doing = async (ctl, now, otherwise, run) => {
    error = null
    step = now
    ctl.update()
    try { await run() } catch (e) { error = e; step = otherwise }
    ctl.update()
  }
  const review = ctl => doing(ctl, 'asking', 'write', async () => {
    diff = request() ? await textDiff(before, withoutBookkeeping((await send(true, { accept: yaml })).data, false)) : []
    step = 'review'
  })
  const save = ctl => doing(ctl, 'saving', 'write', async () => {
    await send(false)
    toast(`${name} is saved.`)
    ctl.close(true)
  })
  let begun = false
  return modal(ctl => {
    ctl.focus = () => document.querySelector('dialog[open] .modal-body :is(input, select, textarea)')?.focus()
    if (!begun) { begun = true; load(ctl) }
    const reviewing = step === 'review' || step === 'saving'
    return frame(ctl, reviewing ? `Review the change of ${name}` : `Edit ${name}`, html`<div class="stack">
      ${failure(error)}
      ${step === 'load' && !error ? loading(6) : nothing}
      ${step === 'write' || step === 'asking' ? html`
        ${kind ? html`<div class="cluster">${choice(way, [['form', 'Form'], ['yaml', 'YAML']], w => { way = w; error = null; ctl.update(); ctl.focus() }, 'Edit as')}<span class="muted small">The server shows what it would store before anything is saved.</span></div>` : nothing}
        ${way === 'form' ? html`${kind.view(values, ctl, known)}${labelsField(values, plural === 'serviceaccounts')}`
          : html`<textarea autofocus rows="22" spellcheck="false" aria-label="YAML" .value=${text} @input=${e => { text = e.target.value }}></textarea>`}` : nothing}
      ${reviewing ? changed(diff) ? html`<p class="muted">This is what the server would store, with its defaults and computed fields.</p>${diffView(diff)}` : html`<p class="callout">Nothing would change.</p>` : nothing}</div>`,
    reviewing
      ? html`<button type="button" @click=${() => { step = 'write'; ctl.update() }}>Back</button><button type="button" class="primary" ?disabled=${step === 'saving' || !changed(diff)} @click=${() => save(ctl)}>${step === 'saving' ? 'Saving…' : 'Save'}</button>`
      : html`<button type="button" @click=${() => ctl.close()}>Cancel</button><button class="primary" ?disabled=${step !== 'write'}>${step === 'asking' ? 'Asking the server…' : 'Review the change'}</button>`,
    { submit: e => { if (step === 'write' && e.target.reportValidity()) review(ctl) } })
  }, { className: 'wide-box' })
}
