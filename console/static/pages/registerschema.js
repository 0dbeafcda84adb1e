// The form that registers a schema. The user can check the schema before.
import { html, nothing } from '../lib/html.js'
import { frame, modal, toast } from '../lib/dialog.js'
import { field, input, textArea } from '../lib/fields.js'
import { indentJSON } from '../lib/format.js'
import { go, link } from '../lib/router.js'
import { changesView, compareSchemas, registryError, verdictView } from './schemachanges.js'

const avroExample = `{
  "type": "record",
  "name": "Order",
  "fields": [
    {"name": "id", "type": "string"},
    {"name": "amount", "type": "double"}
  ]
}`

const jsonExample = `{
  "type": "object",
  "properties": {
    "id": {"type": "string"}
  },
  "required": ["id"]
}`

const protobufExample = `syntax = "proto3";

message Order {
  string id = 1;
  double amount = 2;
}`

const examples = { AVRO: avroExample, JSON: jsonExample, PROTOBUF: protobufExample }

/** Parses a line "name subject version". */
function parseReference(line) {
  const [name, subject, version] = line.trim().split(/\s+/)
  if (!version) throw new Error(`The reference “${line}” is invalid. Write: name subject version`)
  return { name, subject, version: Number(version) }
}

function requestBody(v) {
  const lines = v.references.split('\n').filter(l => l.trim())
  return {
    schema: v.text,
    ...(v.type !== 'AVRO' && { schemaType: v.type }),
    ...(lines.length && { references: lines.map(parseReference) }),
  }
}

function valuesOf(subject, latest) {
  const references = latest?.references ?? []
  return {
    subject,
    type: latest?.schemaType ?? 'AVRO',
    text: latest ? indentJSON(latest.schema) : examples.AVRO,
    references: references.map(r => `${r.name} ${r.subject} ${r.version}`).join('\n'),
    verdict: null,
    changes: null,
    error: null,
    busy: '', // "check" or "save"
  }
}

/** Registers a schema under a subject. latest, if given, is the version to start from. */
export function registerSchema(page, subject, done, latest) {
  const { client, path, org } = page
  const v = valuesOf(subject, latest)

  const check = async ctl => {
    v.busy = 'check'
    v.verdict = null
    v.changes = null
    v.error = null
    ctl.update()
    try {
      const body = requestBody(v)
      const url = path('/compatibility/subjects/*/versions?verbose=true', v.subject)
      v.verdict = (await client.call('POST', url, { body })).data
      const before = { subject: v.subject, version: 'latest' }
      v.changes = await compareSchemas(page, before, { subject: v.subject, ...body }, { background: true })
        .catch(() => null)
    } catch (e) {
      v.error = e
    }
    v.busy = ''
    ctl.update()
  }
  const save = async ctl => {
    v.busy = 'save'
    v.error = null
    ctl.update()
    try {
      const { data } = await client.call('POST', path('/subjects/*/versions', v.subject), { body: requestBody(v) })
      toast(`The schema was registered with the id ${data.id}.`)
      done?.()
      ctl.close(true)
      go(link(org, 'schemas', [client.name, v.subject]))
    } catch (e) {
      v.error = e
      v.busy = ''
      ctl.update()
    }
  }
  const setType = (type, ctl) => {
    if (v.text === examples[v.type]) v.text = examples[type]
    v.type = type
    v.verdict = null
    ctl.update()
  }
  const clearVerdict = () => { v.verdict = null }

  const subjectField = ctl => {
    const options = { required: true, autofocus: !subject, maxlength: 249, placeholder: 'orders-value' }
    return field('Subject', input(v, 'subject', ctl, options))
  }
  const typeSelect = ctl => html`
    <select name="type" @change=${e => setType(e.target.value, ctl)}>${Object.keys(examples).map(type => html`
      <option ?selected=${type === v.type}>${type}</option>`)}</select>`
  const content = ctl => html`
    <div class="stack">
      <div class="fields">
        ${latest ? nothing : subjectField(ctl)}
        ${field('Type', typeSelect(ctl))}
      </div>
      ${field('Schema', textArea(v, 'text', { name: 'schema', rows: 13, oninput: clearVerdict }))}
      <details class="more" ?open=${!!v.references}>
        <summary class="muted small">References to other subjects</summary>
        ${field('One per line: name subject version', textArea(v, 'references', { rows: 2 }))}
      </details>
      ${errorView(v.error)}
      ${v.verdict ? verdictView(v.verdict) : nothing}
      ${v.changes ? changesView(v.changes) : nothing}
    </div>`
  const buttons = ctl => {
    const disabled = !!v.busy || !v.subject
    return html`
      <button type="button" @click=${() => ctl.close()}>Cancel</button>
      <button type="button" ?disabled=${disabled} @click=${() => check(ctl)}>
        ${v.busy === 'check' ? 'Checking…' : 'Check'}
      </button>
      <button class="primary" ?disabled=${disabled}>${v.busy === 'save' ? 'Registering…' : 'Register'}</button>`
  }
  const title = latest ? `New version of ${subject}` : 'Register a schema'
  return modal(ctl => frame(ctl, title, content(ctl), buttons(ctl), { submit: () => save(ctl) }),
    { className: 'wide-box' })
}

/** An error of the registry, or of the form. */
function errorView(error) {
  if (!error) return nothing
  return error.status !== undefined ? registryError(error) : html`<p class="callout bad">${error.message}</p>`
}
