// One subject: its versions, the changes between two of them, its compatibility level.
import { html, nothing } from '../lib/html.js'
import { codeBlock, copyText } from '../lib/copy.js'
import { formDialog, toast } from '../lib/dialog.js'
import { diffView, textDiff } from '../lib/diff.js'
import { field, select } from '../lib/fields.js'
import { download } from '../lib/files.js'
import { indentJSON } from '../lib/format.js'
import { icon } from '../lib/icons.js'
import { loader, loaderView } from '../lib/loader.js'
import { namespaceOfSubject } from '../lib/names.js'
import { go, link, route, setQuery } from '../lib/router.js'
import { badge, button, empty, facts, failure, heading, loading, missingObject, tabOf, tabs } from '../lib/widgets.js'
import { registerSchema } from './registerschema.js'
import { changesView, compareSchemas, levels } from './schemachanges.js'
import { deleteSchema } from './subjectdelete.js'

const background = { background: true }

/** Loads the versions of the subject, its level, and the schemas of single versions. */
function subjectData({ client, path }, subject) {
  const noneIfDeleted = e => {
    if (e.code === 40401) return []
    throw e
  }
  const info = loader(async () => {
    const [active, all, config] = await Promise.all([
      client.get(path('/subjects/*/versions', subject)).catch(noneIfDeleted),
      client.get(path('/subjects/*/versions?deleted=true', subject), background),
      client.get(path('/config/*', subject), background),
    ])
    return {
      versions: all.map(n => ({ n, deleted: !active.includes(n) })).reverse(),
      softDeleted: !active.length,
      level: config.compatibilityLevel,
    }
  })
  const readVersion = n => client.get(path('/subjects/*/versions/*?deleted=true', subject, n), background)
  /** The versions of other subjects that refer to a version. */
  const referencesTo = async n => {
    const url = path('/subjects/*/versions/*/referencedby?deleted=true', subject, n)
    const ids = await client.get(url, background).catch(() => [])
    const versionsOf = id =>
      client.get(path('/schemas/ids/*/versions?deleted=true', id), background).catch(() => [])
    return (await Promise.all(ids.slice(0, 20).map(versionsOf))).flat()
  }
  const schemas = new Map() // loaders by version
  const schemaOf = n => {
    if (!schemas.has(n)) {
      const schema = loader(async () => ({ ...await readVersion(n), referencedBy: await referencesTo(n) }))
      schemas.set(n, schema)
      schema.reload()
    }
    return schemas.get(n)
  }
  return { info, readVersion, schemaOf, clear: () => schemas.clear() }
}

/** Returns the function that loads the changes between two versions. */
function changesLoader(page, subject, readVersion) {
  let key = ''
  let changes = null
  const load = async (from, to) => {
    const [server, before, after] = await Promise.all([
      compareSchemas(page, { subject, version: from }, { subject, version: to }).catch(e => ({ error: e })),
      readVersion(from),
      readVersion(to),
    ])
    return { server, text: await textDiff(indentJSON(before.schema), indentJSON(after.schema), 4) }
  }
  const between = (from, to) => {
    if (key !== `${from} ${to}`) {
      key = `${from} ${to}`
      changes = loader(() => load(from, to))
      changes.reload()
    }
    return changes
  }
  return { between, clear: () => { key = '' } }
}

export function subjectDetail(page) {
  const { client, org, path } = page
  const subject = page.names[1]
  const data = subjectData(page, subject)
  const changes = changesLoader(page, subject, data.readVersion)
  const { info } = data
  info.reload()
  const crumbs = [['Schemas', link(org, 'schemas', [client.name])]]

  const reload = () => {
    data.clear()
    changes.clear()
    return info.reload()
  }
  const setLevel = () => formDialog({
    title: `Compatibility level of ${subject}`,
    values: { level: info.data.level },
    action: 'Set',
    view: (v, ctl) => html`
      ${field('Level', select(v, 'level', ctl, Object.keys(levels).map(l => [l])), levels[v.level])}
      <p class="muted small">
        The global level is always <code>NONE</code> and has no effect. Only the level of the subject is used.
      </p>`,
    run: async v => {
      await client.call('PUT', path('/config/*', subject), { body: { compatibility: v.level } })
      toast(`The compatibility level of ${subject} is ${v.level}.`)
      info.reload()
    },
  })
  /** Deletes the subject, or one of its versions. */
  const remove = version => deleteSchema(page, {
    subject,
    version,
    softDeleted: version ? info.data.versions.find(v => v.n === version).deleted : info.data.softDeleted,
    afterSoft: reload,
    afterPermanent: async () => {
      if (!version || info.data.versions.length === 1) {
        go(link(org, 'schemas', [client.name]))
        return
      }
      await reload()
      setQuery({ v: '' })
    },
  })
  const addVersion = async () => {
    const latest = data.schemaOf(info.data.versions[0].n)
    if (latest.state === 'loading') await latest.reload()
    registerSchema(page, subject, reload, latest.data)
  }
  const actions = () => html`
    ${button('Compatibility', { icon: 'edit', permission: 'schema.subjects.update', onclick: setLevel })}
    ${button('Delete', {
      icon: 'trash',
      kind: 'danger',
      permission: 'schema.subjects.delete',
      onclick: () => remove(0),
    })}
    ${button('New version', {
      kind: 'primary',
      icon: 'plus',
      permission: 'schema.subjects.create',
      onclick: addVersion,
    })}`
  const views = () => [['versions', 'Versions', info.data?.versions.length], ['diff', 'Compare']]
  const content = d => html`
    ${tabs(views())}
    ${tabOf(views()) === 'diff'
      ? compareView(d, changes.between)
      : versionsView(page, subject, d, data.schemaOf, remove)}`
  const missing = () => missingObject(info, {
    title: subject,
    crumbs,
    denied: 'this subject',
    permission: 'schema.subjects.describe',
    empty: {
      icon: 'schemas',
      title: 'The subject does not exist',
      text: 'It may have been deleted permanently.',
      href: link(org, 'schemas', [client.name]),
      more: 'All subjects',
    },
  })
  const subtitle = () => {
    if (!info.data) return html`Namespace ${namespaceOfSubject(subject)}.`
    const { level } = info.data
    return html`Namespace ${namespaceOfSubject(subject)}. Compatibility: <b>${level}</b>. ${levels[level] ?? ''}`
  }
  return () => {
    if (info.state === 'denied' || info.state === 'notFound') return missing()
    return html`
      ${heading({
        title: subject,
        crumbs,
        badge: info.data?.softDeleted ? badge('bad', 'Soft-deleted') : nothing,
        sub: subtitle(),
        actions: info.data ? actions() : nothing,
      })}
      ${loaderView(info, 'this subject', 'schema.subjects.describe', content, loading(6))}`
  }
}

function versionLink({ client, org }, v, latest, chosen) {
  const onclick = e => {
    e.preventDefault()
    setQuery({ v: v.n })
  }
  const state = () => {
    if (v.deleted) return badge('bad', 'Soft-deleted')
    return v.n === latest ? badge('ok', 'Latest') : nothing
  }
  return html`
    <a class="plain ${v.deleted ? 'ended' : ''}" href=${link(org, 'schemas', route.names, { v: v.n })}
      aria-current=${v.n === chosen ? 'true' : nothing} @click=${onclick}>
      <b>Version ${v.n}</b>
      <span class="spacer"></span>
      ${state()}
    </a>`
}

function versionsView(page, subject, { versions }, schemaOf, remove) {
  const chosen = versions.find(v => v.n === Number(route.query.get('v'))) ?? versions[0]
  const latest = versions.find(v => !v.deleted)?.n
  return html`
    <div class="grid">
      <section class="card c3">
        <h2>Versions</h2>
        <div class="rows-list picks-list">${versions.map(v => versionLink(page, v, latest, chosen.n))}</div>
      </section>
      <section class="card c6 wide-c stack">
        ${loaderView(schemaOf(chosen.n), 'this version', 'schema.subjects.describe',
          schema => versionView(page, subject, chosen, schema, remove), loading(4))}
      </section>
    </div>`
}

function versionView({ client, org }, subject, { n, deleted }, s, remove) {
  const fileName = `${subject}-${n}.${s.schemaType === 'PROTOBUF' ? 'proto' : 'json'}`
  const references = list => list?.length ? list.map(r => html`
    <a href=${link(org, 'schemas', [client.name, r.subject], { v: r.version })} title=${r.name ?? nothing}
      >${r.subject} ${r.version}</a>`) : 'nothing'
  return html`
    <header class="cluster">
      <h2>Version ${n}</h2>
      ${deleted ? badge('bad', 'Soft-deleted') : nothing}
      <span class="spacer"></span>
      <button @click=${() => download(fileName, s.schema)}>${icon('down', 16)}Download</button>
      ${button('Delete version', {
        icon: 'trash',
        kind: 'danger',
        permission: 'schema.subjects.delete',
        onclick: () => remove(n),
      })}
    </header>
    ${facts([
      ['Id', html`<a href=${link(org, 'schemas', [client.name], { id: s.id })}>${copyText(s.id)}</a>`],
      ['Type', s.schemaType ?? 'AVRO'],
      ['Refers to', references(s.references)],
      ['Referenced by', references(s.referencedBy)],
    ])}
    ${codeBlock(indentJSON(s.schema), 'Schema')}`
}

function versionSelect(key, chosen, versions) {
  return html`
    <label class="inline-select">
      <span class="muted small">${key}</span>
      <select aria-label=${key} @change=${e => setQuery({ [key]: e.target.value })}>${versions.map(({ n }) => html`
        <option value=${n} ?selected=${n === chosen}>version ${n}</option>`)}</select>
    </label>`
}

function compareView({ versions, level }, between) {
  if (versions.length < 2) {
    return empty({
      icon: 'schemas',
      title: 'The subject has only one version',
      text: 'With a second version, this page shows the changes and their compatibility.',
    })
  }
  const chosen = (key, fallback) =>
    versions.find(v => v.n === Number(route.query.get(key)))?.n ?? fallback.n
  const from = chosen('from', versions[1])
  const to = chosen('to', versions[0])
  const rejected = server => !server.error && !server.levels.includes(level)
  const result = ({ server, text }) => html`
    <section class="card stack">
      <h2>Compatibility</h2>
      ${server.error ? failure(server.error) : changesView(server)}
      ${rejected(server) ? html`<p class="callout bad">
        <span>The compatibility level of this subject, <code>${level}</code>, would reject this change.</span>
      </p>` : nothing}
    </section>
    <section class="card stack"><h2>Text</h2>${diffView(text)}</section>`
  const swap = () => setQuery({ from: to, to: from })
  return html`
    <div class="stack">
      <div class="cluster">
        ${versionSelect('from', from, versions)}
        ${icon('chevron', 16)}
        ${versionSelect('to', to, versions)}
        <button class="ghost" aria-label="Swap" title="Swap" @click=${swap}>⇄</button>
      </div>
      ${loaderView(between(from, to), 'the changes', 'schema.subjects.describe', result, loading(4))}
    </div>`
}
