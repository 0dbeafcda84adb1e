// Roles and bindings: who may do what, and where.
import { html, nothing } from '../lib/html.js'
import { get, group, resource } from '../lib/api.js'
import { LiveList } from '../lib/watch.js'
import { go, link, route, setQuery } from '../lib/router.js'
import { table } from '../lib/table.js'
import { forget, rulesIn } from '../lib/perms.js'
import { ago, badge, button, denied, empty, facts, field, heading, listed, liveMark, loading, state, stateOf, tabOf, tabs, timeline } from '../lib/widgets.js'
import { create, eventsOf, input, namePattern, nameTitle, select, usualActions, yamlView } from '../lib/objects.js'

const plural = 'rolebindings'
const api = 'cloud.vendor.io'

/** The bindings that name a subject. */
export const grantsOf = (bindings, kind, name) => bindings.filter(b => b.spec.subjects?.some(s => s.kind === kind && s.name === name))

/** Where a binding holds, in words. */
export function scopeOf(b) {
  const r = b.spec.resourceNameRestriction
  if (b.spec.cel) return `where ${b.spec.cel}`
  if (b.spec.resourceNames?.length) return `${b.spec.resourceNames.length} named resources`
  const parts = [...Object.entries(r?.common ?? {}), ...Object.entries(r?.messaging ?? {}), ...Object.entries(r?.schema ?? {}), ...Object.entries(r?.cloud ?? {})].filter(([, v]) => v && typeof v === 'string')
  return parts.length ? parts.map(([k, v]) => `${k} ${v}`).join(', ') : 'everywhere in the organization'
}

const icons = { ServiceAccount: 'service account', User: 'user', IdentityPool: 'identity pool' }

export default ctx => ctx.names[0] ? ctx.names[0] === 'role' ? roleDetail(ctx) : detail(ctx) : list(ctx)

function list(ctx) {
  const bindings = new LiveList(resource(ctx.org, plural), ctx.signal)
  const own = new LiveList(resource(ctx.org, 'roles'), ctx.signal)
  const fixed = new LiveList(`${group}/clusterroles`, ctx.signal)
  const permissions = b => (b.spec.roleRef.kind === 'Role' ? own.find(b.spec.roleRef.name) ?? fixed.find(b.spec.roleRef.name) : fixed.find(b.spec.roleRef.name))?.spec.permissions ?? []
  const views = () => [['who', 'Who may do what', bindings.items.length], ['roles', 'Roles', own.items.length + fixed.items.length], ['mine', 'What I may do']]
  const bind = () => button('Give a role', { kind: 'primary', icon: 'plus', permission: 'cloud.rolebindings.create', onclick: () => newBinding(ctx.org) })
  const who = () => listed(bindings, 'role bindings', 'cloud.rolebindings.list', items => {
    const wanted = route.query.get('may') ?? ''
    const rows = items.flatMap(b => (b.spec.subjects ?? []).map(s => ({ b, s, metadata: b.metadata }))).filter(r => !wanted || permissions(r.b).includes(wanted))
    const all = [...new Set(fixed.items.flatMap(r => r.spec.permissions ?? []))].sort()
    if (!items.length) return empty({ icon: 'roles', title: 'No role is given yet', text: 'A role binding gives a role to accounts and people, everywhere in the organization or in a part of it. Administrators need none.', action: bind(), command: `kubectl get rolebindings -n ${ctx.org}` })
    return table({
      rows, noun: 'grants', label: 'Who may do what', href: r => link(ctx.org, 'roles', [r.b.metadata.name]),
      tools: html`<label class="inline-select"><span class="muted small">who may</span><select aria-label="Permission" @change=${e => setQuery({ may: e.target.value })}><option value="">anything</option>${all.map(p => html`<option ?selected=${p === wanted}>${p}</option>`)}</select></label>`,
      columns: [
        { title: 'Who', text: r => r.s.name, cell: r => html`${r.s.name} <span class="muted small">${icons[r.s.kind] ?? r.s.kind}</span>` },
        { title: 'Role', text: r => r.b.spec.roleRef.name, width: 'minmax(0,.8fr)' },
        { title: 'Where', text: r => scopeOf(r.b), width: 'minmax(0,1.3fr)' },
        { title: 'Permissions', text: r => permissions(r.b).length, num: true, width: '100px', wide: true },
        { title: 'State', text: r => stateOf(r.b)[1], cell: r => state(r.b), width: '120px', wide: true },
      ],
    })
  })
  const roles = () => listed(fixed, 'roles', 'cloud.clusterroles.list', items => {
    const rows = [...own.items.map(r => ({ ...r, own: true })), ...items]
    return table({
      rows, noun: 'roles', label: 'Roles', href: r => link(ctx.org, 'roles', ['role', r.metadata.name]),
      columns: [
        { title: 'Name', text: r => r.metadata.name, cell: r => html`${r.metadata.name}${r.own ? html` ${badge('info', 'own')}` : nothing}` },
        { title: 'Given', text: r => bindings.items.filter(b => b.spec.roleRef.name === r.metadata.name).length, num: true, width: '70px', said: true },
        { title: 'Description', text: r => r.spec.description ?? '', width: 'minmax(0,2.4fr)' },
        { title: 'Permissions', text: r => r.spec.permissions?.length ?? 0, num: true, width: '100px', wide: true },
      ],
    })
  })
  return () => html`
    ${heading({ title: 'Roles', badge: liveMark(bindings), sub: 'Deny by default: any binding that matches allows, and nothing denies. Nobody can give what they do not have.', actions: html`${button('New role', { icon: 'plus', permission: 'cloud.roles.create', onclick: () => newRole(ctx.org) })}${bind()}` })}
    ${tabs(views())}${{ who, roles, mine: () => mine(ctx.org) }[tabOf(views())]()}`
}

/** A table of permissions: rows are resources, columns verbs. */
export function matrix(list) {
  const rows = new Map(), verbs = ['describe', 'list', 'create', 'update', 'delete', 'manage', 'produce', 'consume']
  for (const p of list) {
    const [service, thing, verb] = p.split('.')
    const key = `${service}.${thing}`
    if (!rows.has(key)) rows.set(key, new Set())
    rows.get(key).add(verb)
  }
  return html`<div class="scroll-x" tabindex="0" role="region" aria-label="Permissions"><table class="matrix"><thead><tr><th>Resource</th>${verbs.map(v => html`<th>${v}</th>`)}</tr></thead>
    <tbody>${[...rows].map(([key, set]) => html`<tr><th scope="row"><span class="muted">${key.split('.')[0]}.</span>${key.split('.')[1]}</th>${verbs.map(v => html`<td title=${`${key}.${v}`}>${set.has(v) ? html`<span class="yes" aria-label="yes">●</span>` : nothing}</td>`)}</tr>`)}</tbody></table></div>`
}

function mine(org) {
  const known = rulesIn(org)
  if (!known) return loading()
  if (!known.rules.length) return empty({ icon: 'lock', title: 'You may do nothing here', text: `No role binding of ${org} names you. An administrator can give you a role.` })
  return html`<div class="stack">${known.rules.map(r => html`<section class="card"><header><h2>${r.role || r.by}</h2>${r.binding ? badge('', `by ${r.binding}`) : nothing}</header>${matrix(r.permissions ?? [])}</section>`)}</div>`
}

/** Gives a role to somebody. */
export async function newBinding(org, subject) {
  const names = (path, pick = i => i.metadata.name) => get(path, { background: true }).then(l => l.items.map(pick), () => [])
  const [fixed, own, accounts, users, instances] = await Promise.all([names(`${group}/clusterroles`), names(resource(org, 'roles')), names(resource(org, 'serviceaccounts')), names(resource(org, 'users')), names(resource(org, 'messaginginstances'))])
  const people = [...accounts.map(a => [`ServiceAccount/${a}`, `${a} (service account)`]), ...users.map(u => [`User/${u}`, `${u} (user)`])]
  const v = { who: subject ? `${subject.kind}/${subject.name}` : people[0]?.[0] ?? '', role: 'ClusterRole/topic-consumer', name: '', form: 'all', instance: '', tenant: '', namespace: '', topic: '', cel: '' }
  const made = await create({
    title: 'Give a role', org, plural, values: v, action: 'Give', wide: true,
    view: (v, ctl) => html`
      <div class="fields">${field('To', select(v, 'who', ctl, people))}${field('Role', select(v, 'role', ctl, [...own.map(r => [`Role/${r}`, `${r} (own)`]), ...fixed.map(r => [`ClusterRole/${r}`, r])]))}</div>
      ${field('Where', select(v, 'form', ctl, [['all', 'Everywhere in the organization'], ['names', 'By names'], ['cel', 'By a condition (CEL)']]))}
      ${v.form === 'names' ? html`<div class="fields">${field('Instance', select(v, 'instance', ctl, [['', 'any'], ...instances.map(i => [i])]))}${field('Tenant', input(v, 'tenant', ctl, { placeholder: 'any' }))}${field('Namespace', input(v, 'namespace', ctl, { placeholder: 'any' }))}${field('Topic', input(v, 'topic', ctl, { placeholder: 'any, or orders-*' }))}</div>` : nothing}
      ${v.form === 'cel' ? field('Condition', html`<textarea rows="3" spellcheck="false" required @input=${e => { v.cel = e.target.value }}>${v.cel}</textarea>`, html`For example <code>srn.instance == 'prod' && srn.topic_name.startsWith('orders-')</code>`) : nothing}
      ${field('Name of the binding', input(v, 'name', ctl, { pattern: namePattern, title: nameTitle, placeholder: 'made from the others' }))}`,
    build: v => {
      const [kind, ...rest] = v.who.split('/'), [roleKind, role] = v.role.split('/'), who = rest.join('/')
      const common = Object.fromEntries(['instance', 'tenant', 'namespace', 'topic'].filter(k => v[k]).map(k => [k, v[k]]))
      return {
        metadata: v.name ? { name: v.name } : { generateName: `${who.replace(/[^a-z0-9]+/g, '-').replace(/^-|-$/g, '')}-${role}-` },
        spec: { roleRef: { apiGroup: api, kind: roleKind, name: role }, subjects: [{ apiGroup: api, kind, name: who }], ...(v.form === 'names' && { resourceNameRestriction: { common } }), ...(v.form === 'cel' && { cel: v.cel }) },
      }
    },
  })
  forget()
  return made
}

async function newRole(org) {
  const known = rulesIn(org)
  const all = (await get(`${group}/clusterroles`, { background: true }).then(l => [...new Set(l.items.flatMap(r => r.spec.permissions ?? []))], () => [])).sort()
  const made = await create({
    title: 'New role', org, plural: 'roles', wide: true, values: { name: '', description: '', chosen: new Set(), q: '' },
    view: (v, ctl) => html`<div class="fields">${field('Name', input(v, 'name', ctl, { required: true, autofocus: true, pattern: namePattern, title: nameTitle }))}${field('Description', input(v, 'description', ctl, { maxlength: 1024 }))}</div>
      ${field(`Permissions: ${v.chosen.size} chosen`, input(v, 'q', ctl, { placeholder: 'Filter' }), 'You can only put in what you have yourself in the whole organization.')}
      <div class="picks">${all.filter(p => p.includes(v.q)).map(p => html`<label class="check small"><input type="checkbox" .checked=${v.chosen.has(p)} ?disabled=${known && !known.all.has(p)} @change=${e => { e.target.checked ? v.chosen.add(p) : v.chosen.delete(p); ctl.update() }}><code>${p}</code></label>`)}</div>`,
    build: v => ({ metadata: { name: v.name }, spec: { ...(v.description && { description: v.description }), permissions: [...v.chosen].sort() } }),
  })
  forget()
  if (made) go(link(org, 'roles', ['role', made.metadata.name]))
}

function detail(ctx) {
  const name = ctx.names[0]
  const found = new LiveList(resource(ctx.org, plural), ctx.signal, { selector: `metadata.name=${name}` })
  const events = eventsOf(ctx)
  const crumbs = [['Roles', link(ctx.org, 'roles')]]
  const views = [['overview', 'Overview'], ['yaml', 'YAML']]
  return () => {
    const b = found.items[0]
    if (!b) {
      if (found.state === 'denied') return html`${heading({ title: name, crumbs })}${denied('this role binding', found.error, 'cloud.rolebindings.describe')}`
      if (found.state === 'loading') return html`${heading({ title: name, crumbs })}${loading()}`
      return html`${heading({ title: name, crumbs })}${empty({ icon: 'roles', title: 'There is no such role binding', text: 'It may have been deleted.', href: link(ctx.org, 'roles'), more: 'All grants' })}`
    }
    b.path = resource(ctx.org, plural, name)
    return html`${heading({ title: name, crumbs, badge: state(b), sub: `Gives ${b.spec.roleRef.name} ${/^(everywhere|where) /.test(scopeOf(b)) ? scopeOf(b) : `on ${scopeOf(b)}`}.`, actions: usualActions(b, plural, 'roles', { removal: { text: 'Those it names lose the role when the call returns.' } }) })}
      ${tabs(views)}${tabOf(views) === 'yaml' ? yamlView(b) : html`<div class="grid"><div class="c7 stack">
        <section class="card"><h2>Who</h2><div class="rows-list">${b.spec.subjects?.map(s => html`<div>${{ ServiceAccount: html`<a href=${link(ctx.org, 'accounts', [s.name])}>${s.name}</a>`, User: html`<a href=${link(ctx.org, 'users', [s.name])}>${s.name}</a>` }[s.kind] ?? s.name}<span class="spacer"></span><span class="muted small">${icons[s.kind] ?? s.kind}</span></div>`)}</div></section>
        <section class="card"><h2>What and where</h2>${facts([['Role', html`<a href=${link(ctx.org, 'roles', ['role', b.spec.roleRef.name])}>${b.spec.roleRef.name}</a>`], ['Where', scopeOf(b)], ['Created', ago(b.metadata.creationTimestamp)]])}</section></div>
        <section class="card c5"><h2>Timeline</h2>${timeline(b, events(b))}</section></div>`}`
  }
}

function roleDetail(ctx) {
  const name = ctx.names[1]
  const own = new LiveList(resource(ctx.org, 'roles'), ctx.signal, { selector: `metadata.name=${name}` })
  const fixed = new LiveList(`${group}/clusterroles`, ctx.signal, { selector: `metadata.name=${name}` })
  const crumbs = [['Roles', link(ctx.org, 'roles', [], { tab: 'roles' })]]
  return () => {
    const r = own.items[0] ?? fixed.items[0]
    if (!r) return html`${heading({ title: name, crumbs })}${own.loaded && fixed.loaded ? empty({ icon: 'roles', title: 'There is no such role', text: 'It may have been deleted. Bindings to it grant nothing.', href: link(ctx.org, 'roles', [], { tab: 'roles' }), more: 'All roles' }) : loading()}`
    return html`${heading({ title: name, crumbs, badge: badge(own.items[0] ? 'info' : '', own.items[0] ? 'Own role' : 'Predefined'), sub: r.spec.description, actions: own.items[0] ? usualActions(r, 'roles', 'roles', { removal: { text: 'Its bindings stay and grant nothing.' } }) : nothing })}
      <section class="card">${matrix(r.spec.permissions ?? [])}</section>`
  }
}
