// Role bindings and roles: the lists, and the caller's own permissions.
import { html, nothing } from '../lib/html.js'
import { apiRoot, resource } from '../lib/api.js'
import { scopeOf, subjectKinds } from '../lib/bindings.js'
import { rulesIn } from '../lib/perms.js'
import { link, route, setQuery } from '../lib/router.js'
import { stateBadge, stateOf } from '../lib/status.js'
import { table } from '../lib/table.js'
import { LiveList } from '../lib/watch.js'
import { badge, button, empty, heading, listView, liveIndicator, loading, tabOf, tabs } from '../lib/widgets.js'
import { newBinding, newRole } from './newrole.js'
import { bindingDetail, permissionTable, roleDetail } from './role.js'

export default ctx => {
  if (!ctx.names[0]) return list(ctx)
  return ctx.names[0] === 'role' ? roleDetail(ctx) : bindingDetail(ctx)
}

function list(ctx) {
  const { org, signal } = ctx
  const lists = {
    bindings: new LiveList(resource(org, 'rolebindings'), signal),
    own: new LiveList(resource(org, 'roles'), signal),
    predefined: new LiveList(`${apiRoot}/clusterroles`, signal),
  }
  const { bindings, own, predefined } = lists
  const views = () => [
    ['bindings', 'Role bindings', bindings.items.length],
    ['roles', 'Roles', own.items.length + predefined.items.length],
    ['mine', 'My permissions'],
  ]
  const parts = {
    bindings: () => bindingsView(org, lists),
    roles: () => rolesView(org, lists),
    mine: () => ownPermissions(org),
  }
  const newRoleButton = () => button('New role', {
    icon: 'plus',
    permission: 'cloud.roles.create',
    onclick: () => newRole(org),
  })
  return () => html`
    ${heading({
      title: 'Roles',
      badge: liveIndicator(bindings),
      sub: 'Access is denied by default. A request is allowed if any role binding allows it; there are no deny ' +
        'rules. You can grant only permissions that you have.',
      actions: html`${newRoleButton()}${grantButton(org)}`,
    })}
    ${tabs(views())}
    ${parts[tabOf(views())]()}`
}

const grantButton = org => button('Grant a role', {
  kind: 'primary',
  icon: 'plus',
  permission: 'cloud.rolebindings.create',
  onclick: () => newBinding(org),
})

/** The permissions that a binding grants. */
function permissionsOf({ spec: { roleRef } }, { own, predefined }) {
  const role = roleRef.kind === 'Role' ? own.find(roleRef.name) : undefined
  return (role ?? predefined.find(roleRef.name))?.spec.permissions ?? []
}

function permissionFilter(permissions, chosen) {
  return html`
    <label class="inline-select">
      <span class="muted small">permission</span>
      <select aria-label="Permission" @change=${e => setQuery({ may: e.target.value })}>
        <option value="">any</option>
        ${permissions.map(p => html`<option ?selected=${p === chosen}>${p}</option>`)}
      </select>
    </label>`
}

function bindingsView(org, lists) {
  const { bindings, predefined } = lists
  const noBindings = () => empty({
    icon: 'roles',
    title: 'No role binding yet',
    text: 'A role binding grants a role to service accounts and users, in the whole organization or in a part of it. ' +
      'Administrators need none.',
    action: grantButton(org),
    command: `kubectl get rolebindings -n ${org}`,
  })
  return listView(bindings, 'role bindings', 'cloud.rolebindings.list', items => {
    if (!items.length) return noBindings()
    const permission = route.query.get('may') ?? ''
    const all = [...new Set(predefined.items.flatMap(r => r.spec.permissions ?? []))].sort()
    const rows = items
      .filter(b => !permission || permissionsOf(b, lists).includes(permission))
      .flatMap(binding => (binding.spec.subjects ?? []).map(subject => ({ binding, subject })))
    return table({
      rows,
      columns: [
        {
          title: 'Subject',
          text: r => r.subject.name,
          cell: ({ subject: { name, kind } }) =>
            html`${name} <span class="muted small">${subjectKinds[kind] ?? kind}</span>`,
        },
        { title: 'Role', text: r => r.binding.spec.roleRef.name, width: 'minmax(0,.8fr)' },
        { title: 'Scope', text: r => scopeOf(r.binding), width: 'minmax(0,1.3fr)' },
        {
          title: 'Permissions',
          text: r => permissionsOf(r.binding, lists).length,
          num: true,
          width: '100px',
          wideOnly: true,
        },
        {
          title: 'State',
          text: r => stateOf(r.binding)[1],
          cell: r => stateBadge(r.binding),
          width: '120px',
          wideOnly: true,
        },
      ],
      noun: 'grants',
      label: 'Role bindings',
      href: r => link(org, 'roles', [r.binding.metadata.name]),
      tools: permissionFilter(all, permission),
    })
  })
}

function rolesView(org, { bindings, own, predefined }) {
  const bindingCount = r => bindings.items.filter(b => b.spec.roleRef.name === r.metadata.name).length
  return listView(predefined, 'roles', 'cloud.clusterroles.list', items => table({
    rows: [...own.items.map(r => ({ ...r, own: true })), ...items],
    columns: [
      {
        title: 'Name',
        text: r => r.metadata.name,
        cell: r => html`${r.metadata.name}${r.own ? html` ${badge('info', 'own')}` : nothing}`,
      },
      { title: 'Bindings', text: bindingCount, num: true, width: '80px', labeled: true },
      { title: 'Description', text: r => r.spec.description ?? '', width: 'minmax(0,2.4fr)' },
      { title: 'Permissions', text: r => r.spec.permissions?.length ?? 0, num: true, width: '100px', wideOnly: true },
    ],
    noun: 'roles',
    label: 'Roles',
    href: r => link(org, 'roles', ['role', r.metadata.name]),
  }))
}

function ownPermissions(org) {
  const held = rulesIn(org)
  if (!held) return loading()
  if (!held.rules.length) {
    return empty({
      icon: 'lock',
      title: 'You have no permissions here',
      text: `No role binding of ${org} names you. Ask an administrator for a role.`,
    })
  }
  const card = r => html`
    <section class="card">
      <header><h2>${r.role || r.by}</h2>${r.binding ? badge('', `by ${r.binding}`) : nothing}</header>
      ${permissionTable(r.permissions ?? [])}
    </section>`
  return html`<div class="stack">${held.rules.map(card)}</div>`
}
