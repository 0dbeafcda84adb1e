// One role, and one role binding.
import { html, nothing } from '../lib/html.js'
import { apiRoot, resource } from '../lib/api.js'
import { scopeOf, subjectKinds } from '../lib/bindings.js'
import { eventsOf, objectActions, yamlView } from '../lib/objects.js'
import { link } from '../lib/router.js'
import { stateBadge, timeline } from '../lib/status.js'
import { ago } from '../lib/timeago.js'
import { LiveList } from '../lib/watch.js'
import { badge, empty, facts, heading, loading, missingObject, tabOf, tabs } from '../lib/widgets.js'

const verbs = ['describe', 'list', 'create', 'update', 'delete', 'manage', 'produce', 'consume']

/** Permissions as a table: the rows are resources, the columns verbs. */
export function permissionTable(permissions) {
  const rows = new Map()
  for (const p of permissions) {
    const [service, type, verb] = p.split('.')
    const key = `${service}.${type}`
    if (!rows.has(key)) rows.set(key, new Set())
    rows.get(key).add(verb)
  }
  const cell = (key, verb, held) => html`
    <td title=${`${key}.${verb}`}>${held ? html`<span class="yes" aria-label="yes">●</span>` : nothing}</td>`
  const row = ([key, held]) => {
    const [service, type] = key.split('.')
    return html`
      <tr>
        <th scope="row"><span class="muted">${service}.</span>${type}</th>
        ${verbs.map(verb => cell(key, verb, held.has(verb)))}
      </tr>`
  }
  return html`
    <div class="scroll-x" tabindex="0" role="region" aria-label="Permissions">
      <table class="matrix">
        <thead><tr><th>Resource</th>${verbs.map(verb => html`<th>${verb}</th>`)}</tr></thead>
        <tbody>${[...rows].map(row)}</tbody>
      </table>
    </div>`
}

const bindingViews = [['overview', 'Overview'], ['yaml', 'YAML']]
const subjectPages = { ServiceAccount: 'accounts', User: 'users' }

export function bindingDetail(ctx) {
  const { org } = ctx
  const name = ctx.names[0]
  const bindings = new LiveList(resource(org, 'rolebindings'), ctx.signal, { selector: `metadata.name=${name}` })
  const events = eventsOf(ctx)
  const crumbs = [['Roles', link(org, 'roles')]]
  const missing = () => missingObject(bindings, {
    title: name,
    crumbs,
    denied: 'this role binding',
    permission: 'cloud.rolebindings.describe',
    empty: {
      icon: 'roles',
      title: 'The role binding does not exist',
      text: 'It may have been deleted.',
      href: link(org, 'roles'),
      more: 'All role bindings',
    },
  })
  return () => {
    const b = bindings.items[0]
    if (!b) return missing()
    b.path = resource(org, 'rolebindings', name)
    const scope = scopeOf(b)
    const where = /^(everywhere|where) /.test(scope) ? scope : `on ${scope}`
    return html`
      ${heading({
        title: name,
        crumbs,
        badge: stateBadge(b),
        sub: `Grants ${b.spec.roleRef.name} ${where}.`,
        actions: objectActions(b, 'rolebindings', 'roles', {
          removal: { text: 'Its subjects lose the role immediately.' },
        }),
      })}
      ${tabs(bindingViews)}
      ${tabOf(bindingViews) === 'yaml' ? yamlView(b) : bindingView(org, b, events(b))}`
  }
}

function subjectRow(org, { kind, name }) {
  const page = subjectPages[kind]
  return html`
    <div>
      ${page ? html`<a href=${link(org, page, [name])}>${name}</a>` : name}
      <span class="spacer"></span>
      <span class="muted small">${subjectKinds[kind] ?? kind}</span>
    </div>`
}

function bindingView(org, b, events) {
  const role = b.spec.roleRef.name
  return html`
    <div class="grid">
      <div class="c7 stack">
        <section class="card">
          <h2>Subjects</h2>
          <div class="rows-list">${b.spec.subjects?.map(s => subjectRow(org, s))}</div>
        </section>
        <section class="card">
          <h2>Grant</h2>
          ${facts([
            ['Role', html`<a href=${link(org, 'roles', ['role', role])}>${role}</a>`],
            ['Scope', scopeOf(b)],
            ['Created', ago(b.metadata.creationTimestamp)],
          ])}
        </section>
      </div>
      <section class="card c5"><h2>Timeline</h2>${timeline(b, events)}</section>
    </div>`
}

export function roleDetail(ctx) {
  const { org, signal } = ctx
  const name = ctx.names[1]
  const selector = `metadata.name=${name}`
  const own = new LiveList(resource(org, 'roles'), signal, { selector })
  const predefined = new LiveList(`${apiRoot}/clusterroles`, signal, { selector })
  const list = link(org, 'roles', [], { tab: 'roles' })
  const crumbs = [['Roles', list]]
  const missing = () => {
    if (!own.loaded || !predefined.loaded) return loading()
    return empty({
      icon: 'roles',
      title: 'The role does not exist',
      text: 'It may have been deleted. Bindings to it grant nothing.',
      href: list,
      more: 'All roles',
    })
  }
  return () => {
    const isOwn = !!own.items[0]
    const role = own.items[0] ?? predefined.items[0]
    if (!role) return html`${heading({ title: name, crumbs })}${missing()}`
    const removal = { text: 'Its bindings remain and grant nothing.' }
    return html`
      ${heading({
        title: name,
        crumbs,
        badge: isOwn ? badge('info', 'Own role') : badge('', 'Predefined'),
        sub: role.spec.description,
        actions: isOwn ? objectActions(role, 'roles', 'roles', { removal }) : nothing,
      })}
      <section class="card">${permissionTable(role.spec.permissions ?? [])}</section>`
  }
}
