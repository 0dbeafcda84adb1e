// The schema of a topic, and its subjects in the schema registry.
import { html, nothing } from '../lib/html.js'
import { topicSchemas } from '../lib/clusters.js'
import { codeBlock } from '../lib/copy.js'
import { confirm, formDialog, toast } from '../lib/dialog.js'
import { diffView, textDiff } from '../lib/diff.js'
import { field, select, textArea } from '../lib/fields.js'
import { indentJSON } from '../lib/format.js'
import { loader, loaderView } from '../lib/loader.js'
import { kafkaName } from '../lib/names.js'
import { link } from '../lib/router.js'
import { update } from '../lib/store.js'
import { ago } from '../lib/timeago.js'
import { badge, button, empty, failure, loading } from '../lib/widgets.js'

const types = ['AVRO', 'JSON', 'PROTOBUF', 'STRING', 'INT32', 'INT64', 'FLOAT', 'DOUBLE', 'BOOLEAN', 'BYTES']
const needsDefinition = type => ['AVRO', 'JSON', 'PROTOBUF'].includes(type)

export function schemaTab(page) {
  const { client, topic } = page
  const root = topicSchemas(client, topic)
  const versions = loader(async () => {
    const { getSchemaResponses: list } = await client.get(`${root}/schemas`, { background: true })
    return list.sort((a, b) => b.version - a.version)
  })
  const subjects = loader(() => client.get(`${client.registry}/subjects`, { background: true }))
  let started = false
  let chosen = null
  let diff = null

  const choose = async v => {
    chosen = v
    diff = null
    const before = versions.data.find(x => x.version < v.version)
    if (before) diff = await textDiff(indentJSON(before.data), indentJSON(v.data))
    update()
  }
  const reload = () => {
    chosen = null
    versions.reload()
  }
  const add = async () => {
    if (await newSchema(client, root, versions.data ?? [])) reload()
  }
  const remove = () => confirm({
    title: 'Delete the schema?',
    name: topic.topic,
    text: 'Messages keep their schema version, but can no longer be decoded with it. The next schema gets a new ' +
      'version number.',
    run: async () => {
      await client.call('DELETE', `${root}/schema`)
      reload()
    },
  })
  const addButton = () => button('New version', {
    kind: 'primary',
    icon: 'plus',
    permission: 'messaging.schemas.create or messaging.topics.produce',
    onclick: add,
  })
  const deleteButton = () => button('Delete', {
    icon: 'trash',
    kind: 'danger',
    permission: 'messaging.schemas.delete',
    onclick: remove,
  })
  const noSchema = () => empty({
    icon: 'schemas',
    title: 'The topic has no schema',
    text: 'Payloads can have any format. With a schema, messages have its version, and new versions are checked for ' +
      'compatibility with the old ones.',
    action: addButton(),
    command: `curl -X POST -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' ` +
      `--data '{"type":"STRING","schema":"","properties":{}}' "$FRESHET_SERVER"${root}/schema`,
  })
  const versionsView = list => {
    if (!list.length) return noSchema()
    const v = chosen ?? list[0]
    if (!chosen) choose(v)
    return html`
      <div class="cluster">
        <p class="muted">The schema of the topic. Every message has its version.</p>
        <span class="spacer"></span>
        ${deleteButton()}
        ${addButton()}
      </div>
      <div class="grid">
        <section class="card c4">
          <h2>Versions</h2>
          <div class="rows-list picks-list">${list.map(x => versionButton(x, x === v, choose))}</div>
        </section>
        <section class="card c8 stack">
          <h2>Version ${v.version}</h2>
          ${v.data
            ? codeBlock(indentJSON(v.data), 'Schema')
            : html`<p class="muted">The type ${v.type} has no definition.</p>`}
          ${diff ? html`<h3>Changes since the previous version</h3>${diffView(diff)}` : nothing}
        </section>
      </div>`
  }

  return () => {
    if (!started) {
      started = true
      versions.reload()
      subjects.reload()
    }
    const shown = versions.state === 'notFound' ? { state: 'ready', data: [] } : versions
    return html`
      <div class="stack">
        ${loaderView(shown, 'the schema', 'messaging.schemas.describe', versionsView, loading())}
        ${subjectsView(page, subjects.data ?? [])}
      </div>`
  }
}

const versionButton = (x, pressed, choose) => html`
  <button type="button" class="plain" aria-pressed=${pressed} @click=${() => choose(x)}>
    <b>Version ${x.version}</b>
    ${badge('', x.type)}
    <span class="spacer"></span>
    <span class="muted small">${ago(x.timestamp)}</span>
  </button>`

/** The subjects whose names follow from the topic. */
function subjectsView({ client, org, topic }, subjects) {
  const names = ['key', 'value'].flatMap(k => [`${kafkaName(topic)}-${k}`, `${topic.full}-${k}`])
  const existing = names.filter(s => subjects.includes(s))
  const defaultName = `${kafkaName(topic)}-value`
  const none = () => html`
    <p class="muted">
      No subject that you can read is named after this topic. Serializers register schemas under
      <a href=${link(org, 'schemas', [client.name], { new: defaultName })}><code>${defaultName}</code></a>.
    </p>`
  return html`
    <section class="card">
      <h2>In the schema registry</h2>
      ${existing.length ? html`
        <div class="rows-list">${existing.map(s => html`
          <div><a href=${link(org, 'schemas', [client.name, s])}>${s}</a></div>`)}</div>` : none()}
    </section>`
}

function verdictView(verdict) {
  if (!verdict) return html`<span class="muted small">whether it is compatible with the latest version</span>`
  if (verdict.error) return failure(verdict.error)
  const text = verdict.compatibility ? 'Compatible' : 'Not compatible'
  return badge(verdict.compatibility ? 'ok' : 'bad', `${text} under ${verdict.schemaCompatibilityStrategy}`)
}

/** Adds a version to the topic's schema with a form. */
function newSchema(client, root, versions) {
  const latest = versions[0]
  const check = async (v, ctl) => {
    try {
      const body = { type: v.type, schema: v.text, properties: {} }
      v.verdict = (await client.call('POST', `${root}/compatibility`, { body })).data
    } catch (e) {
      v.verdict = { error: e }
    }
    ctl.update()
  }
  const definition = v => field('Avro definition',
    textArea(v, 'text', { name: 'schema', rows: 14, oninput: () => { v.verdict = null } }),
    'As in Pulsar, an Avro record describes JSON and PROTOBUF topics too.')
  return formDialog({
    title: 'New version of the schema',
    wide: true,
    action: 'Add',
    values: { type: latest?.type ?? 'AVRO', text: latest ? indentJSON(latest.data) : '', verdict: null },
    view: (v, ctl) => html`
      ${field('Type', select(v, 'type', ctl, types.map(t => [t])))}
      ${needsDefinition(v.type) ? definition(v) : nothing}
      ${latest ? html`
        <div class="cluster">
          <button type="button" @click=${() => check(v, ctl)}>Check</button>
          ${verdictView(v.verdict)}
        </div>` : nothing}`,
    run: async v => {
      const body = { type: v.type, schema: needsDefinition(v.type) ? v.text : '', properties: {} }
      const { data } = await client.call('POST', `${root}/schema`, { body })
      toast(`Version ${data.version.version} is the latest version now.`)
    },
  })
}
