// Schemas of a cluster's registry: subjects, the registry's mode, and one by its id.
import { html, nothing } from '../lib/html.js'
import { poll } from '../lib/watch.js'
import { link, route, setQuery } from '../lib/router.js'
import { table } from '../lib/table.js'
import { badge, button, codeBlock, empty, facts, failure, field, heading, loading } from '../lib/widgets.js'
import { select } from '../lib/objects.js'
import { toast } from '../lib/dialog.js'
import { asked, form, onCluster, shownOr } from '../lib/plane.js'
import { indented } from './topicsettings.js'
import { detail, register } from './subject.js'

export default onCluster('schemas', 'Schemas', ctx => {
  ctx.path = (rest, ...names) => `${ctx.at.registry}${rest.replace(/\*/g, () => encodeURIComponent(names.shift()))}`
  return ctx.names.length > 1 ? detail(ctx) : list(ctx)
})

const modes = { READWRITE: ['ok', 'Read and write'], READONLY: ['warn', 'Read only'], READONLY_OVERRIDE: ['warn', 'Read only'], IMPORT: ['warn', 'Import'] }

function list(ctx) {
  const { at, org } = ctx
  const subjects = asked(async o => {
    const [active, all] = await Promise.all([at.get(ctx.path('/subjects'), o), at.get(ctx.path('/subjects?deleted=true'), { ...o, background: true })])
    const alive = new Set(active)
    return { active: active.map(name => ({ name })), all: all.map(name => ({ name, deleted: !alive.has(name) })), gone: all.length - active.length }
  })
  const head = asked(async () => ({ mode: (await at.get(ctx.path('/mode'), { background: true })).mode, level: (await at.get(ctx.path('/config'), { background: true })).compatibilityLevel }))
  let byId = null
  poll(() => subjects.again({ background: subjects.state !== 'loading' }), 10000, ctx.signal)
  poll(() => head.again(), 30000, ctx.signal)
  const add = () => register(ctx, route.query.get('new') ?? '', () => subjects.again({ background: true }))
  if (route.query.get('new')) queueMicrotask(() => { add(); setQuery({ new: '' }) })
  const addButton = () => button('Register a schema', { kind: 'primary', icon: 'plus', permission: 'schema.subjects.create', onclick: add })
  const lookUp = id => {
    if (byId?.id === id) return
    const mine = byId = { id, a: asked(async () => {
      const [schema, versions] = await Promise.all([at.get(ctx.path('/schemas/ids/*', id)), at.get(ctx.path('/schemas/ids/*/versions?deleted=true', id), { background: true })])
      return { schema, versions }
    }) }
    mine.a.again()
  }
  const changeMode = () => form({
    title: 'Mode of the registry', values: { mode: head.data?.mode ?? 'READWRITE', force: false }, action: 'Set',
    view: (v, ctl) => html`${field('Mode', select(v, 'mode', ctl, [['READWRITE', 'Read and write'], ['READONLY', 'Read only'], ['IMPORT', 'Import: ids and versions are given']]), 'One for the whole registry; subjects have none of their own.')}
      ${v.mode === 'IMPORT' ? html`<label class="check"><input type="checkbox" @change=${e => { v.force = e.target.checked }}> Although there are subjects</label>` : nothing}`,
    run: async v => { await at.call('PUT', ctx.path(`/mode${v.force ? '?force=true' : ''}`), { body: { mode: v.mode } }); toast(`The registry is in mode ${v.mode}.`); head.again() },
  })
  const one = () => {
    const id = route.query.get('id')
    lookUp(id)
    return html`<section class="card stack"><header class="cluster"><h2>Schema id ${id}</h2><span class="spacer"></span><button class="ghost" @click=${() => setQuery({ id: '' })}>Close</button></header>
      ${shownOr(byId.a, 'this schema', 'schema.subjects.describe', d => html`${facts([['Type', d.schema.schemaType ?? 'AVRO'], ['Registered as', d.versions.map(v => html`<a href=${link(org, 'schemas', [at.name, v.subject], { v: v.version })}>${v.subject} ${v.version}</a> `)]])}${codeBlock(indented(d.schema.schema), 'Schema')}`, loading(2))}</section>`
  }
  return () => html`
    ${heading({ title: 'Schemas', badge: ctx.picker, sub: 'What messages look like, under subjects, checked before a new version is taken. You see only subjects that your role can read.', actions: addButton() })}
    <div class="stack">
    ${head.data ? html`<div class="cluster">${badge(...(modes[head.data.mode] ?? ['', head.data.mode]))}${button('Change the mode', { kind: 'link small', permission: 'schema.mode.update', onclick: changeMode })}
      <span class="muted small" title="By its specification the registry always answers so. A subject without a level of its own is checked as BACKWARD.">Global level: <code>${head.data.level}</code> <span class="hide-narrow">– always; subjects without one of their own are checked as <code>BACKWARD</code></span></span></div>` : head.error ? failure(head.error) : nothing}
    ${route.query.get('id') ? one() : nothing}
    ${shownOr(subjects, 'subjects', 'schema.subjects.list', d => {
      const deleted = route.query.has('deleted')
      const rows = deleted ? d.all : d.active
      if (!d.all.length) return empty({ icon: 'schemas', title: 'No subject yet', text: 'A subject holds the versions of one schema, usually of the values of a topic. You see only subjects that your role can read.', action: addButton(), command: `curl -X POST -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' \\\n  --data '{"schema":"\\"string\\""}' "$BASE_URL"${ctx.path('/subjects/orders-value/versions')}`, href: link(org, 'reference'), more: 'The API' })
      return table({
        rows, noun: rows.length === 1 ? 'subject' : 'subjects', label: 'Subjects', href: s => link(org, 'schemas', [at.name, s.name]), rowClass: s => s.deleted ? 'ended' : '',
        tools: html`<label class="check small"><input type="checkbox" .checked=${deleted} @change=${e => setQuery({ deleted: e.target.checked ? '1' : '' })}> with ${d.gone} soft-deleted</label>
          <form class="by-id" @submit=${e => { e.preventDefault(); setQuery({ id: e.target.elements.id.value }) }}><input name="id" type="number" min="1" max="2147483647" placeholder="Schema id" aria-label="Schema id"></form>`,
        columns: [{ title: 'Subject', text: s => s.name, cell: s => s.name }, { title: 'State', text: s => s.deleted ? 'soft-deleted' : 'active', cell: s => s.deleted ? badge('bad', 'Soft-deleted') : badge('ok', 'Active'), width: '140px' },
          { title: 'Belongs to', text: s => place(s.name), width: 'minmax(0,.6fr)', wide: true }],
      })
    }, loading(8))}</div>`
}

/** Which messaging coordinates govern a subject. */
export function place(subject) {
  const full = /^persistent:\/\/([^/]+)\/([^/]+)\/(.+)$/.exec(subject)
  if (full) return `${full[1]}/${full[2]}`
  const parts = subject.split('.')
  return parts.length === 3 ? `${parts[0]}/${parts[1]}` : 'public/default'
}

