// The subjects of a cluster's schema registry, its mode, and schemas by their ids.
import { html, nothing } from '../lib/html.js'
import { clusterPage } from '../lib/clusterpage.js'
import { codeBlock } from '../lib/copy.js'
import { formDialog, toast } from '../lib/dialog.js'
import { field, select } from '../lib/fields.js'
import { indentJSON } from '../lib/format.js'
import { loader, loaderView } from '../lib/loader.js'
import { namespaceOfSubject } from '../lib/names.js'
import { link, route, setQuery } from '../lib/router.js'
import { table } from '../lib/table.js'
import { poll } from '../lib/watch.js'
import { badge, button, empty, facts, failure, heading, loading } from '../lib/widgets.js'
import { registerSchema } from './registerschema.js'
import { subjectDetail } from './subject.js'

export default clusterPage('schemas', 'Schemas', ctx => {
  /** A path of the registry; every * is replaced by the next name. */
  const path = (rest, ...names) =>
    `${ctx.client.registry}${rest.replace(/\*/g, () => encodeURIComponent(names.shift()))}`
  const page = { ...ctx, path }
  return ctx.names.length > 1 ? subjectDetail(page) : list(page)
})

const background = { background: true }

function list(page) {
  const { client, org, path } = page
  const subjects = loader(async o => {
    const [active, all] = await Promise.all([
      client.get(path('/subjects'), o),
      client.get(path('/subjects?deleted=true'), { ...o, background: true }),
    ])
    const isActive = new Set(active)
    return {
      active: active.map(name => ({ name })),
      all: all.map(name => ({ name, deleted: !isActive.has(name) })),
      deletedCount: all.length - active.length,
    }
  })
  const settings = loader(async () => {
    const [{ mode }, { compatibilityLevel: level }] = await Promise.all([
      client.get(path('/mode'), background),
      client.get(path('/config'), background),
    ])
    return { mode, level }
  })
  poll(() => subjects.reload({ background: subjects.state !== 'loading' }), 10000, page.signal)
  poll(() => settings.reload(), 30000, page.signal)

  const add = () => registerSchema(page, route.query.get('new') ?? '', () => subjects.reload(background))
  if (route.query.get('new')) {
    queueMicrotask(() => {
      add()
      setQuery({ new: '' })
    })
  }
  const addButton = () => button('Register a schema', {
    kind: 'primary',
    icon: 'plus',
    permission: 'schema.subjects.create',
    onclick: add,
  })
  const byId = schemaById(page)

  const noSubjects = () => empty({
    icon: 'schemas',
    title: 'No subject yet',
    text: 'A subject has the versions of one schema, usually of the values of a topic. You see only subjects that ' +
      'your role can read.',
    action: addButton(),
    command: `curl -X POST -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\\n` +
      `  --data '{"schema":"\\"string\\""}' "$FRESHET_SERVER"${path('/subjects/orders-value/versions')}`,
    href: link(org, 'reference'),
    more: 'API reference',
  })
  const subjectTable = ({ active, all, deletedCount }) => {
    const withDeleted = route.query.has('deleted')
    const rows = withDeleted ? all : active
    return table({
      rows,
      columns,
      noun: rows.length === 1 ? 'subject' : 'subjects',
      label: 'Subjects',
      href: s => link(org, 'schemas', [client.name, s.name]),
      rowClass: s => s.deleted ? 'ended' : '',
      tools: tools(withDeleted, deletedCount),
    })
  }
  return () => html`
    ${heading({
      title: 'Schemas',
      badge: page.picker,
      sub: 'A schema defines the format of messages. A subject has the versions of a schema, and the registry checks ' +
        'new versions for compatibility. You see only subjects that your role can read.',
      actions: addButton(),
    })}
    <div class="stack">
      ${settingsView(page, settings)}
      ${route.query.get('id') ? byId(route.query.get('id')) : nothing}
      ${loaderView(subjects, 'subjects', 'schema.subjects.list',
        data => data.all.length ? subjectTable(data) : noSubjects(), loading(8))}
    </div>`
}

const columns = [
  { title: 'Subject', text: s => s.name },
  {
    title: 'State',
    text: s => s.deleted ? 'soft-deleted' : 'active',
    cell: s => s.deleted ? badge('bad', 'Soft-deleted') : badge('ok', 'Active'),
    width: '140px',
  },
  { title: 'Namespace', text: s => namespaceOfSubject(s.name), width: 'minmax(0,.6fr)', wideOnly: true },
]

function tools(withDeleted, deletedCount) {
  const openById = e => {
    e.preventDefault()
    setQuery({ id: e.target.elements.id.value })
  }
  return html`
    <label class="check small">
      <input type="checkbox" .checked=${withDeleted} @change=${e => setQuery({ deleted: e.target.checked ? '1' : '' })}>
      show ${deletedCount} soft-deleted
    </label>
    <form class="by-id" @submit=${openById}>
      <input name="id" type="number" min="1" max="2147483647" placeholder="Schema id" aria-label="Schema id">
    </form>`
}

/** Returns the view of a schema by its id. */
function schemaById({ client, org, path }) {
  let shown = { id: '', result: null }
  const open = id => {
    const result = loader(async () => {
      const [schema, versions] = await Promise.all([
        client.get(path('/schemas/ids/*', id)),
        client.get(path('/schemas/ids/*/versions?deleted=true', id), background),
      ])
      return { schema, versions }
    })
    shown = { id, result }
    result.reload()
  }
  const versionLink = v => html`
    <a href=${link(org, 'schemas', [client.name, v.subject], { v: v.version })}>${v.subject} ${v.version}</a>`
  return id => {
    if (shown.id !== id) open(id)
    return html`
      <section class="card stack">
        <header class="cluster">
          <h2>Schema id ${id}</h2>
          <span class="spacer"></span>
          <button class="ghost" @click=${() => setQuery({ id: '' })}>Close</button>
        </header>
        ${loaderView(shown.result, 'this schema', 'schema.subjects.describe', ({ schema, versions }) => html`
          ${facts([['Type', schema.schemaType ?? 'AVRO'], ['Registered as', versions.map(versionLink)]])}
          ${codeBlock(indentJSON(schema.schema), 'Schema')}`, loading(2))}
      </section>`
  }
}

const modes = {
  READWRITE: ['ok', 'Read and write'],
  READONLY: ['warn', 'Read only'],
  READONLY_OVERRIDE: ['warn', 'Read only'],
  IMPORT: ['warn', 'Import'],
}

const modeChoices = [
  ['READWRITE', 'Read and write'],
  ['READONLY', 'Read only'],
  ['IMPORT', 'Import: requests contain ids and versions'],
]

const changeMode = ({ client, path }, settings) => formDialog({
  title: 'Mode of the registry',
  values: { mode: settings.data.mode, force: false },
  action: 'Set',
  view: (v, ctl) => html`
    ${field('Mode', select(v, 'mode', ctl, modeChoices), 'The mode applies to all subjects.')}
    ${v.mode === 'IMPORT' ? html`
      <label class="check">
        <input type="checkbox" @change=${e => { v.force = e.target.checked }}>
        Even if there are subjects
      </label>` : nothing}`,
  run: async v => {
    await client.call('PUT', path(`/mode${v.force ? '?force=true' : ''}`), { body: { mode: v.mode } })
    toast(`The registry has the mode ${v.mode}.`)
    settings.reload()
  },
})

function settingsView(page, settings) {
  if (!settings.data) return failure(settings.error)
  const { mode, level } = settings.data
  const changeButton = button('Change the mode', {
    kind: 'link small',
    permission: 'schema.mode.update',
    onclick: () => changeMode(page, settings),
  })
  return html`
    <div class="cluster">
      ${badge(...(modes[mode] ?? ['', mode]))}
      ${changeButton}
      <span class="muted small"
        title="The specification fixes the global level. Subjects without their own level are checked as BACKWARD.">
        Global compatibility level: <code>${level}</code>
        <span class="hide-narrow">(fixed; subjects without their own level are checked as <code>BACKWARD</code>)</span>
      </span>
    </div>`
}
