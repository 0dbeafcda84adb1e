// Service accounts, the identities of programs: the list, and the form that creates one.
import { html } from '../lib/html.js'
import { resource } from '../lib/api.js'
import { bindingsOf } from '../lib/bindings.js'
import { field, input, namePattern, nameTitle } from '../lib/fields.js'
import { create } from '../lib/objects.js'
import { go, link } from '../lib/router.js'
import { stateBadge, stateOf } from '../lib/status.js'
import { table } from '../lib/table.js'
import { ago } from '../lib/timeago.js'
import { LiveList } from '../lib/watch.js'
import { badge, button, empty, heading, listView, liveIndicator } from '../lib/widgets.js'
import { accountDetail, isAdmin, roleAnnotation } from './account.js'

const plural = 'serviceaccounts'

export default ctx => ctx.names[0] ? accountDetail(ctx) : list(ctx)

function list(ctx) {
  const { org, signal } = ctx
  const accounts = new LiveList(resource(org, plural), signal)
  const keys = new LiveList(resource(org, 'apikeys'), signal)
  const bindings = new LiveList(resource(org, 'rolebindings'), signal)
  const addButton = () => button('New service account', {
    kind: 'primary',
    icon: 'plus',
    permission: 'cloud.serviceaccounts.create',
    onclick: () => newAccount(org),
  })
  const roles = a => {
    if (isAdmin(a)) return 'administrator'
    const granted = bindingsOf(bindings.items, 'ServiceAccount', a.metadata.name)
    return [...new Set(granted.map(b => b.spec.roleRef.name))].join(', ')
  }
  const rolesView = a => {
    if (isAdmin(a)) return badge('info', 'Administrator')
    return roles(a) || html`<span class="muted">none: it has no permissions</span>`
  }
  const keyCount = a => keys.items.filter(k => k.spec.serviceAccountName === a.metadata.name).length
  const columns = [
    { title: 'Name', text: a => a.metadata.name },
    { title: 'State', text: a => stateOf(a)[1], cell: stateBadge, width: '130px' },
    { title: 'Roles', text: roles, cell: rolesView, width: 'minmax(0,1.4fr)' },
    { title: 'Keys', text: keyCount, width: '70px', num: true, wideOnly: true },
    {
      title: 'Age',
      text: a => a.metadata.creationTimestamp,
      cell: a => ago(a.metadata.creationTimestamp),
      width: '96px',
      wideOnly: true,
    },
  ]
  const accountTable = rows => table({
    rows,
    columns,
    noun: rows.length === 1 ? 'account' : 'accounts',
    label: 'Service accounts',
    href: a => link(org, 'accounts', [a.metadata.name]),
  })
  const noAccounts = () => empty({
    icon: 'accounts',
    title: 'No service account yet',
    text: 'Create one for each program. It gets a credentials file and can have API keys.',
    action: addButton(),
    command: `kubectl get serviceaccounts -n ${org}`,
  })
  return () => html`
    ${heading({
      title: 'Service accounts',
      badge: liveIndicator(accounts),
      sub: 'A program signs in as a service account. Role bindings grant its permissions.',
      actions: addButton(),
    })}
    ${listView(accounts, 'service accounts', 'cloud.serviceaccounts.list', rows =>
      rows.length ? accountTable(rows) : noAccounts())}`
}

async function newAccount(org) {
  const option = (v, ctl, value, title, text) => {
    const onchange = () => {
      v.admin = value
      ctl.update()
    }
    return html`
      <label class="choice">
        <input type="radio" name="admin" value=${value} .checked=${v.admin === value} @change=${onchange}>
        <span><b>${title}</b><p>${text}</p></span>
      </label>`
  }
  const nameOptions = { required: true, autofocus: true, pattern: namePattern, title: nameTitle }
  const created = await create({
    title: 'New service account',
    org,
    plural,
    values: { name: '', admin: '' },
    view: (v, ctl) => html`
      ${field('Name', input(v, 'name', ctl, nameOptions))}
      <div class="stack tight" role="radiogroup" aria-label="Permissions">
        ${option(v, ctl, '', 'No permissions',
          'Grant it roles afterwards. This is the right choice for almost every program.')}
        ${option(v, ctl, 'admin', 'Administrator of the organization',
          `It has all permissions in ${org} and can create other administrators. You cannot change this later.`)}
      </div>`,
    build: v => ({ metadata: { name: v.name, ...(v.admin && { annotations: { [roleAnnotation]: 'admin' } }) } }),
  })
  if (created) go(link(org, 'accounts', [created.metadata.name]))
}
