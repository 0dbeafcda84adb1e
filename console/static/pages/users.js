// The users of an organization.
import { html, nothing } from '../lib/html.js'
import { post, resource } from '../lib/api.js'
import { bindingList, bindingsOf } from '../lib/bindings.js'
import { codeBlock, copyId, copyText } from '../lib/copy.js'
import { frame, modal } from '../lib/dialog.js'
import { field, input, select } from '../lib/fields.js'
import { absolute } from '../lib/format.js'
import { create, eventsOf, objectActions } from '../lib/objects.js'
import { go, link } from '../lib/router.js'
import { userSignIn } from '../lib/session.js'
import { stateBadge, stateOf, timeline } from '../lib/status.js'
import { update } from '../lib/store.js'
import { table } from '../lib/table.js'
import { ago } from '../lib/timeago.js'
import { LiveList } from '../lib/watch.js'
import {
  badge, button, empty, facts, failure, heading, listView, liveIndicator, missingObject,
} from '../lib/widgets.js'
import { newBinding } from './newrole.js'

const plural = 'users'
const fullName = u => [u.spec.name?.first, u.spec.name?.last].filter(Boolean).join(' ')

export default ctx => ctx.names[0] ? detail(ctx) : list(ctx)

function list(ctx) {
  const { org, signal } = ctx
  const users = new LiveList(resource(org, plural), signal)
  const bindings = new LiveList(resource(org, 'rolebindings'), signal)
  const roles = u => {
    const granted = bindingsOf(bindings.items, 'User', u.metadata.name)
    return [...new Set(granted.map(b => b.spec.roleRef.name))].join(', ')
  }
  const inviteButton = () => button('Invite', {
    kind: 'primary',
    icon: 'plus',
    permission: 'cloud.users.create',
    onclick: () => invite(org),
  })
  const columns = [
    { title: 'E-mail', text: u => u.spec.email },
    { title: 'State', text: u => stateOf(u)[1], cell: stateBadge, width: '160px' },
    { title: 'Name', text: fullName, width: 'minmax(0,.8fr)' },
    {
      title: 'Roles',
      text: roles,
      cell: u => roles(u) || html`<span class="muted">no role</span>`,
      width: 'minmax(0,1fr)',
    },
    {
      title: 'Age',
      text: u => u.metadata.creationTimestamp,
      cell: u => ago(u.metadata.creationTimestamp),
      width: '96px',
      wideOnly: true,
    },
  ]
  const userTable = rows => table({
    rows,
    columns,
    noun: rows.length === 1 ? 'user' : 'users',
    label: 'Users',
    href: u => link(org, 'users', [u.metadata.name]),
  })
  const noUsers = () => empty({
    icon: 'users',
    title: 'No user yet',
    text: 'Invite a user by e-mail address, and grant a role.',
    action: inviteButton(),
    command: `kubectl get users -n ${org}`,
  })
  return () => html`
    ${heading({
      title: 'Users',
      badge: liveIndicator(users),
      sub: 'The people of this organization. As for service accounts, role bindings grant their permissions.',
      actions: inviteButton(),
    })}
    ${listView(users, 'users', 'cloud.users.list', rows => rows.length ? userTable(rows) : noUsers())}`
}

/** Creates a user with a form, and offers an invitation link if users can sign in. */
async function invite(org) {
  const created = await create({
    title: 'Invite a user',
    org,
    plural,
    action: 'Invite',
    values: { email: '', first: '', last: '' },
    view: (v, ctl) => html`
      ${field('E-mail', input(v, 'email', ctl, { required: true, type: 'email', autofocus: true, maxlength: 254 }))}
      <div class="fields">
        ${field('First name', input(v, 'first', ctl, { maxlength: 256, required: !!v.last }))}
        ${field('Last name', input(v, 'last', ctl, { maxlength: 256, required: !!v.first }))}
      </div>`,
    build: v => ({
      metadata: { name: v.email.toLowerCase() },
      spec: { email: v.email, ...(v.first && { name: { first: v.first, last: v.last } }) },
    }),
  })
  if (!created) return
  go(link(org, 'users', [created.metadata.name]))
  if (await userSignIn()) invitationLink(org, created.metadata.name)
}

const lifetimes = [['3600', 'an hour'], ['86400', 'a day'], ['604800', 'a week'], ['2592000', '30 days']]

/** Creates a one-time link with which a user sets a passkey or a password. */
function invitationLink(org, name) {
  const v = { lifetime: '604800' }
  let busy = false
  let error = null
  let invitation = null
  const submit = async ctl => {
    if (invitation) return
    busy = true
    try {
      const body = { spec: { lifetimeSeconds: +v.lifetime } }
      invitation = (await post(resource(org, plural, name) + '/invite', body)).status
    } catch (e) {
      error = e
    }
    busy = false
    ctl.update()
  }
  const result = () => html`
    <p class="callout ok">
      Send this link only to the user: the first person who opens it sets the passkey or password. It works once,
      until ${absolute(invitation.expirationTime)}.
    </p>
    ${codeBlock(invitation.url, 'Invitation link', 'wrap')}`
  const form = ctl => html`
    <p>
      With the link, ${name} sets a passkey or a password. Earlier links become invalid. Existing passkeys and
      passwords work until the link is used, and are replaced then.
    </p>
    ${field('Valid for', select(v, 'lifetime', ctl, lifetimes))}`
  const buttons = ctl => invitation
    ? html`<button type="button" class="primary" @click=${() => ctl.close()}>Done</button>`
    : html`
      <button type="button" @click=${() => ctl.close()}>Not now</button>
      <button class="primary" ?disabled=${busy}>Create the link</button>`
  const content = ctl => html`<div class="stack">${failure(error)}${invitation ? result() : form(ctl)}</div>`
  return modal(ctl => frame(ctl, `Invitation of ${name}`, content(ctl), buttons(ctl), { submit: () => submit(ctl) }))
}

function detail(ctx) {
  const { org, signal } = ctx
  const name = ctx.names[0]
  const users = new LiveList(resource(org, plural), signal, { selector: `metadata.name=${name}` })
  const bindings = new LiveList(resource(org, 'rolebindings'), signal)
  const events = eventsOf(ctx)
  const crumbs = [['Users', link(org, 'users')]]
  let canSignIn = false
  userSignIn().then(provider => {
    canSignIn = !!provider
    update()
  })
  const missing = () => missingObject(users, {
    title: name,
    crumbs,
    denied: 'this user',
    permission: 'cloud.users.describe',
    empty: {
      icon: 'users',
      title: 'The user does not exist',
      text: 'The user may have been deleted.',
      href: link(org, 'users'),
      more: 'All users',
    },
  })
  const linkButton = () => button('Invitation link', {
    icon: 'link',
    permission: 'cloud.users.update',
    onclick: () => invitationLink(org, name),
  })
  return () => {
    const u = users.items[0]
    if (!u) return missing()
    return html`
      ${heading({
        title: fullName(u) || u.spec.email,
        crumbs,
        badge: stateBadge(u),
        sub: fullName(u) ? u.spec.email : '',
        actions: objectActions(u, plural, 'users', {
          before: canSignIn ? linkButton() : nothing,
          removal: {
            text: 'The user loses all access immediately. Role bindings that name the user remain; delete them too.',
          },
        }),
      })}
      <div class="grid">
        <div class="c7 stack">
          ${rolesCard(org, name, bindingsOf(bindings.items, 'User', name))}
          <section class="card"><h2>User</h2>${userFacts(u)}</section>
        </div>
        <section class="card c5"><h2>Timeline</h2>${timeline(u, events(u))}</section>
      </div>`
  }
}

function rolesCard(org, name, bindings) {
  const grantButton = button('Grant a role', {
    icon: 'plus',
    permission: 'cloud.rolebindings.create',
    onclick: () => newBinding(org, { kind: 'User', name }),
  })
  return html`
    <section class="card">
      <header><h2>Roles</h2><span class="actions">${grantButton}</span></header>
      ${bindings.length
        ? bindingList(org, bindings)
        : html`<p class="muted">None: the user has no permissions.</p>`}
    </section>`
}

function userFacts(u) {
  const { invitation } = u.spec
  const decision = () => badge(/accepted/i.test(invitation.decision) ? 'ok' : 'warn', invitation.decision)
  return facts([
    ['E-mail', copyText(u.spec.email)],
    ['Name', fullName(u) || '–'],
    invitation && ['Invitation', decision()],
    invitation?.expiration && ['Valid until', ago(invitation.expiration)],
    ['Created', ago(u.metadata.creationTimestamp)],
    ['UID', copyId(u.metadata.uid)],
  ])
}
