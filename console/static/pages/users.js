// Users: the people of the organization.
import { html, nothing } from '../lib/html.js'
import { post, resource } from '../lib/api.js'
import { peopleSignIn } from '../lib/session.js'
import { frame, modal } from '../lib/dialog.js'
import { absolute } from '../lib/format.js'
import { update } from '../lib/store.js'
import { LiveList } from '../lib/watch.js'
import { go, link } from '../lib/router.js'
import { table } from '../lib/table.js'
import { ago, badge, button, codeBlock, copyId, copyText, denied, empty, facts, failure, field, heading, listed, liveMark, loading, state, stateOf, timeline } from '../lib/widgets.js'
import { create, eventsOf, input, select, usualActions } from '../lib/objects.js'
import { grantsOf, newBinding } from './roles.js'

const plural = 'users'
const full = u => [u.spec.name?.first, u.spec.name?.last].filter(Boolean).join(' ')

export default ctx => ctx.names[0] ? detail(ctx) : list(ctx)

function list(ctx) {
  const users = new LiveList(resource(ctx.org, plural), ctx.signal)
  const bindings = new LiveList(resource(ctx.org, 'rolebindings'), ctx.signal)
  const roles = u => [...new Set(grantsOf(bindings.items, 'User', u.metadata.name).map(b => b.spec.roleRef.name))].join(', ')
  const make = () => button('Invite', { kind: 'primary', icon: 'plus', permission: 'cloud.users.create', onclick: () => invite(ctx.org) })
  return () => html`
    ${heading({ title: 'Users', badge: liveMark(users), sub: 'People of this organization. What they may do is given by role bindings, as it is for service accounts.', actions: make() })}
    ${listed(users, 'users', 'cloud.users.list', rows => rows.length ? table({
      rows, noun: rows.length === 1 ? 'user' : 'users', label: 'Users', href: u => link(ctx.org, 'users', [u.metadata.name]),
      columns: [
        { title: 'E-mail', text: u => u.spec.email },
        { title: 'State', text: u => stateOf(u)[1], cell: state, width: '160px' },
        { title: 'Name', text: full, width: 'minmax(0,.8fr)' },
        { title: 'Roles', text: roles, cell: u => roles(u) || html`<span class="muted">no role</span>`, width: 'minmax(0,1fr)' },
        { title: 'Age', text: u => u.metadata.creationTimestamp, cell: u => ago(u.metadata.creationTimestamp), width: '96px', wide: true },
      ],
    }) : empty({ icon: 'users', title: 'Nobody yet', text: 'Invite a person by e-mail address, and give them a role.', action: make(), command: `kubectl get users -n ${ctx.org}` }))}`
}

async function invite(org) {
  const made = await create({
    title: 'Invite a person', org, plural, action: 'Invite', values: { email: '', first: '', last: '' },
    view: (v, ctl) => html`${field('E-mail', input(v, 'email', ctl, { required: true, type: 'email', autofocus: true, maxlength: 254 }))}
      <div class="fields">${field('First name', input(v, 'first', ctl, { maxlength: 256, required: !!v.last }))}${field('Last name', input(v, 'last', ctl, { maxlength: 256, required: !!v.first }))}</div>`,
    build: v => ({ metadata: { name: v.email.toLowerCase() }, spec: { email: v.email, ...(v.first && { name: { first: v.first, last: v.last } }) } }),
  })
  if (!made) return
  go(link(org, 'users', [made.metadata.name]))
  if (await peopleSignIn()) invitationLink(org, made.metadata.name)
}

/** A one-time link with which a person sets a passkey or a password. Whoever has it is that person. */
function invitationLink(org, name) {
  const v = { life: '604800' }
  let busy = false, error = null, made = null
  return modal(ctl => frame(ctl, `Invitation of ${name}`, html`<div class="stack">${failure(error)}
    ${made ? html`<p class="callout ok">Send this link to the person, and to nobody else: whoever opens it first sets the passkey or password. It is good once, until ${absolute(made.expirationTime)}.</p>${codeBlock(made.url, 'Invitation link', 'wrap')}`
      : html`<p>The link lets ${name} set a passkey or a password. An earlier link is not good any more. What the person has works until the link is used, and is replaced then.</p>${field('Good for', select(v, 'life', ctl, [['3600', 'an hour'], ['86400', 'a day'], ['604800', 'a week'], ['2592000', '30 days']]))}`}</div>`,
  made ? html`<button type="button" class="primary" @click=${() => ctl.close()}>Done</button>` : html`<button type="button" @click=${() => ctl.close()}>Not now</button><button class="primary" ?disabled=${busy}>Make the link</button>`,
  { submit: async () => {
    if (made) return
    busy = true
    try { made = (await post(resource(org, plural, name) + '/invite', { spec: { lifetimeSeconds: +v.life } })).status } catch (e) { error = e }
    busy = false
    ctl.update()
  } }))
}

function detail(ctx) {
  const name = ctx.names[0]
  const found = new LiveList(resource(ctx.org, plural), ctx.signal, { selector: `metadata.name=${name}` })
  const bindings = new LiveList(resource(ctx.org, 'rolebindings'), ctx.signal)
  const events = eventsOf(ctx)
  const crumbs = [['Users', link(ctx.org, 'users')]]
  let people = null
  peopleSignIn().then(p => { people = p; update() })
  return () => {
    const u = found.items[0]
    if (!u) {
      if (found.state === 'denied') return html`${heading({ title: name, crumbs })}${denied('this user', found.error, 'cloud.users.describe')}`
      if (found.state === 'loading') return html`${heading({ title: name, crumbs })}${loading()}`
      return html`${heading({ title: name, crumbs })}${empty({ icon: 'users', title: 'There is no such user', text: 'They may have been deleted.', href: link(ctx.org, 'users'), more: 'All users' })}`
    }
    const mine = grantsOf(bindings.items, 'User', name)
    return html`
      ${heading({ title: full(u) || u.spec.email, crumbs, badge: state(u), sub: full(u) ? u.spec.email : '', actions: usualActions(u, plural, 'users', { before: people ? button('Invitation link', { icon: 'link', permission: 'cloud.users.update', onclick: () => invitationLink(ctx.org, name) }) : nothing, removal: { text: 'They can do nothing more from the moment the call returns. Role bindings that name them stay; delete them too.' } }) })}
      <div class="grid"><div class="c7 stack">
        <section class="card"><header><h2>Roles</h2><span class="actions">${button('Give a role', { icon: 'plus', permission: 'cloud.rolebindings.create', onclick: () => newBinding(ctx.org, { kind: 'User', name }) })}</span></header>
          ${mine.length ? html`<div class="rows-list">${mine.map(b => html`<div><a href=${link(ctx.org, 'roles', [b.metadata.name])}>${b.spec.roleRef.name}</a><span class="muted small">by ${b.metadata.name}</span><span class="spacer"></span>${state(b)}</div>`)}</div>` : html`<p class="muted">None: they may do nothing.</p>`}</section>
        <section class="card"><h2>User</h2>${facts([['E-mail', copyText(u.spec.email)], ['Name', full(u) || '–'], u.spec.invitation && ['Invitation', badge(/accepted/i.test(u.spec.invitation.decision) ? 'ok' : 'warn', u.spec.invitation.decision)], u.spec.invitation?.expiration && ['Good until', ago(u.spec.invitation.expiration)], ['Created', ago(u.metadata.creationTimestamp)], ['UID', copyId(u.metadata.uid)]])}</section></div>
        <section class="card c5"><h2>Timeline</h2>${timeline(u, events(u))}</section></div>`
  }
}
