// Editing an object, with a form or as YAML. The server validates the change in a dry
// run, and its result is reviewed before it is saved.
import { html, nothing } from './html.js'
import { call, get, resource } from './api.js'
import { changed, diffView, textDiff } from './diff.js'
import { frame, modal, toast } from './dialog.js'
import { choice } from './fields.js'
import { withoutManagedFields } from './format.js'
import { forms, labelsField, labelsOf, writeLabels } from './forms.js'
import { mergePatch } from './patch.js'
import { failure, loading } from './widgets.js'

const yaml = 'application/yaml'
const patchType = 'application/merge-patch+json'

export async function edit(org, plural, name) {
  const path = resource(org, plural, name)
  const form = forms[plural]
  /** step: load, write, check (the dry run), review, save. */
  const s = {
    mode: form ? 'form' : 'yaml', step: 'load', error: null, diff: null,
    before: '', text: '', object: null, values: null, choices: null,
  }

  const load = async ctl => {
    try {
      [s.before, s.object, s.choices] = await Promise.all([
        get(path, { accept: yaml, background: true }).then(text => withoutManagedFields(text, false)),
        get(path),
        form?.choices?.(org),
      ])
      s.text = s.before
      if (form) s.values = { ...form.read(s.object), labels: labelsOf(s.object) }
      s.step = 'write'
    } catch (e) {
      s.error = e
    }
    ctl.update()
    ctl.focus()
  }

  /** The request as [method, body, content type]; undefined if the form changes nothing. */
  const request = () => {
    if (s.mode === 'yaml') return ['PUT', s.text, yaml]
    const after = structuredClone(s.object)
    form.write(s.values, after)
    writeLabels(s.values.labels, after)
    const patch = mergePatch(s.object, after)
    if (!patch) return undefined
    const { resourceVersion } = s.object.metadata // a concurrent change is a conflict
    return ['PATCH', { ...patch, metadata: { ...patch.metadata, resourceVersion } }, patchType]
  }
  const send = (dryRun, o = {}) => {
    const [method, body, contentType] = request()
    const query = `${dryRun ? 'dryRun=All&' : ''}fieldManager=freshet-console&fieldValidation=Strict`
    return call(method, `${path}?${query}`, { body, contentType, ...o })
  }

  /** Runs a step; after an error the user can change the object again. */
  const runStep = async (ctl, step, run) => {
    s.error = null
    s.step = step
    ctl.update()
    try {
      await run()
    } catch (e) {
      s.error = e
      s.step = 'write'
    }
    ctl.update()
  }
  const review = ctl => runStep(ctl, 'check', async () => {
    s.diff = []
    if (request()) {
      const { data } = await send(true, { accept: yaml })
      s.diff = await textDiff(s.before, withoutManagedFields(data, false))
    }
    s.step = 'review'
  })
  const save = ctl => runStep(ctl, 'save', async () => {
    await send(false)
    toast(`${name} was saved.`)
    ctl.close(true)
  })

  const setMode = (mode, ctl) => {
    s.mode = mode
    s.error = null
    ctl.update()
    ctl.focus()
  }
  const modeChoice = ctl => html`
    <div class="cluster">
      ${choice(s.mode, [['form', 'Form'], ['yaml', 'YAML']], mode => setMode(mode, ctl), 'Edit as')}
      <span class="muted small">The server validates the change, and you review it before it is saved.</span>
    </div>`
  const yamlEditor = () => html`
    <textarea autofocus rows="22" spellcheck="false" aria-label="YAML" .value=${s.text}
      @input=${e => { s.text = e.target.value }}></textarea>`
  const writeView = ctl => html`
    ${form ? modeChoice(ctl) : nothing}
    ${s.mode === 'form'
      ? html`${form.view(s.values, ctl, s.choices)}${labelsField(s.values, plural === 'serviceaccounts')}`
      : yamlEditor()}`
  const reviewView = () => changed(s.diff)
    ? html`
      <p class="muted">The server would store this object, with its defaults and computed fields.</p>
      ${diffView(s.diff)}`
    : html`<p class="callout">Nothing would change.</p>`

  const writeButtons = ctl => html`
    <button type="button" @click=${() => ctl.close()}>Cancel</button>
    <button class="primary" ?disabled=${s.step !== 'write'}>
      ${s.step === 'check' ? 'Checking…' : 'Review the change'}
    </button>`
  const back = ctl => {
    s.step = 'write'
    ctl.update()
  }
  const reviewButtons = ctl => html`
    <button type="button" @click=${() => back(ctl)}>Back</button>
    <button type="button" class="primary" ?disabled=${s.step === 'save' || !changed(s.diff)}
      @click=${() => save(ctl)}>${s.step === 'save' ? 'Saving…' : 'Save'}</button>`

  let started = false
  return modal(ctl => {
    ctl.focus = () => document.querySelector('dialog[open] .modal-body :is(input, select, textarea)')?.focus()
    if (!started) {
      started = true
      load(ctl)
    }
    const reviewing = s.step === 'review' || s.step === 'save'
    const writing = s.step === 'write' || s.step === 'check'
    const title = reviewing ? `Review the change of ${name}` : `Edit ${name}`
    const body = html`
      <div class="stack">
        ${failure(s.error)}
        ${s.step === 'load' && !s.error ? loading(6) : nothing}
        ${writing ? writeView(ctl) : nothing}
        ${reviewing ? reviewView() : nothing}
      </div>`
    const submit = e => {
      if (s.step === 'write' && e.target.reportValidity()) review(ctl)
    }
    return frame(ctl, title, body, reviewing ? reviewButtons(ctl) : writeButtons(ctl), { submit })
  }, { className: 'wide-box' })
}
