// The settings of a topic: policies, partitions, properties, permissions, termination.
import { html, nothing } from '../lib/html.js'
import { copyText } from '../lib/copy.js'
import { confirm, formDialog, toast } from '../lib/dialog.js'
import { field, input } from '../lib/fields.js'
import { loader, loaderView } from '../lib/loader.js'
import { badge, button, denied, loading } from '../lib/widgets.js'
import { changePolicy, isSet, policies } from './topicpolicies.js'

const updatePermission = 'messaging.topics.update'
const managePermission = 'messaging.topics.manage'
const json = value => ({ body: JSON.stringify(value), contentType: 'application/json' })

function settingsLoader(page) {
  const read = async (rest, fallback) => {
    try {
      return await page.client.get(page.path(rest), { background: true })
    } catch (e) {
      if (e.status === 403) return fallback
      throw e
    }
  }
  /** The value that applies, and the topic's own value. */
  const readPolicy = async ({ name }) => {
    const [applied, own] = await Promise.all([read(`/${name}?applied=true`, null), read(`/${name}`, null)])
    return [name, { applied, own }]
  }
  return loader(async () => {
    const [properties, permissions, ...values] = await Promise.all([
      read('/properties', {}),
      read('/permissions', null),
      ...policies.map(readPolicy),
    ])
    return { properties: properties ?? {}, permissions, values: Object.fromEntries(values) }
  })
}

export function settingsTab(page) {
  const settings = settingsLoader(page)
  let started = false
  const content = ({ values, properties, permissions }) => html`
    <div class="grid">
      <section class="card c7">
        <h2>Policies</h2>
        <div class="rows-list policies">${policies.map(p => policyRow(page, p, values[p.name], settings))}</div>
      </section>
      <div class="c5 stack">
        ${partitionsCard(page)}
        ${propertiesCard(page, properties, settings)}
        ${permissionsCard(page, permissions, settings)}
        ${terminationCard(page)}
      </div>
    </div>`
  return () => {
    if (!started) {
      started = true
      settings.reload()
    }
    return loaderView(settings, 'the settings', 'messaging.topics.describe', content, loading(8))
  }
}

/** Deletes a setting of the topic, and shows an error as a message. */
async function remove({ client, path }, rest, settings) {
  try {
    await client.call('DELETE', path(rest))
    settings.reload()
  } catch (e) {
    toast(e.message, 'bad')
  }
}

const iconButton = (icon, label, permission, onclick) =>
  button('', { icon, kind: 'ghost square', label, permission, onclick })

function policyRow(page, policy, { applied, own }, settings) {
  const { name, title, text, format } = policy
  const change = () => changePolicy(page, policy, applied, () => settings.reload())
  const inherit = () => remove(page, `/${name}`, settings)
  const source = isSet(own) ? 'set here' : 'from the namespace'
  return html`
    <div>
      <div><b>${title}</b>${text ? html`<p class="muted small">${text}</p>` : nothing}</div>
      <span class="spacer"></span>
      <span class="right">${format(applied)}<br><span class="muted small">${source}</span></span>
      <span class="cluster nowrap">
        ${iconButton('edit', `Change ${title}`, updatePermission, change)}
        ${isSet(own)
          ? iconButton('x', `Use the namespace's value of ${title}`, updatePermission, inherit)
          : nothing}
      </span>
    </div>`
}

function partitionsCard({ client, path, topic, stats }) {
  const grow = () => formDialog({
    title: 'Add partitions',
    values: { n: String((topic.partitions || 1) + 1) },
    action: 'Add',
    view: (v, ctl) => html`
      <p class="callout warn">
        Keys move to other partitions, so the messages of a key before and after the change have no common order.
        You cannot remove partitions.
      </p>
      ${field('Partitions',
        input(v, 'n', ctl, { type: 'number', min: topic.partitions + 1, max: 1024, required: true }))}`,
    run: async v => {
      await client.call('POST', path('/partitions'), json(Number(v.n)))
      stats.reload()
    },
  })
  const addButton = () => button('Add', { permission: updatePermission, onclick: grow })
  return html`
    <section class="card">
      <header>
        <h2>Partitions</h2>
        ${topic.partitions ? html`<span class="actions">${addButton()}</span>` : nothing}
      </header>
      <p>${topic.partitions
        ? html`<b>${topic.partitions}</b> <span class="muted">partitions. The key of a message selects one.</span>`
        : html`<span class="muted">The topic is not partitioned: all messages have one order.</span>`}</p>
    </section>`
}

function propertiesCard(page, properties, settings) {
  const add = () => formDialog({
    title: 'Property',
    values: { key: '', value: '' },
    action: 'Save',
    view: (v, ctl) => html`
      <div class="fields">
        ${field('Name', input(v, 'key', ctl, { required: true, autofocus: true }))}
        ${field('Value', input(v, 'value', ctl))}
      </div>`,
    run: async v => {
      await page.client.call('PUT', page.path('/properties'), { body: { [v.key]: v.value } })
      settings.reload()
    },
  })
  const row = ([name, value]) => html`
    <div>
      <code>${name}</code>
      <span class="spacer"></span>
      ${copyText(value)}
      ${iconButton('trash', `Delete ${name}`, updatePermission,
        () => remove(page, `/properties?key=${encodeURIComponent(name)}`, settings))}
    </div>`
  const list = Object.entries(properties)
  return html`
    <section class="card">
      <header>
        <h2>Properties</h2>
        <span class="actions">${button('Add', { icon: 'plus', permission: updatePermission, onclick: add })}</span>
      </header>
      ${list.length ? html`<div class="rows-list">${list.map(row)}</div>` : html`<p class="muted">None.</p>`}
    </section>`
}

const topicActions = ['produce', 'consume']

function permissionsCard(page, permissions, settings) {
  const grant = () => formDialog({
    title: 'Grant a permission on this topic',
    values: { principal: '', produce: false, consume: true },
    action: 'Grant',
    view: (v, ctl) => html`
      ${field('Principal',
        input(v, 'principal', ctl, { required: true, autofocus: true, placeholder: 'account@organization' }),
        'To grant permissions on many topics, use a role binding.')}
      ${topicActions.map(action => html`
        <label class="check">
          <input type="checkbox" .checked=${v[action]} @change=${e => { v[action] = e.target.checked }}> ${action}
        </label>`)}`,
    run: async v => {
      const url = page.path(`/permissions/${encodeURIComponent(v.principal)}`)
      await page.client.call('POST', url, json(topicActions.filter(action => v[action])))
      settings.reload()
    },
  })
  const row = ([principal, actions]) => html`
    <div>
      ${copyText(principal)}
      <span class="spacer"></span>
      ${actions.map(action => badge('', action))}
      ${iconButton('trash', `Revoke the permissions of ${principal}`, managePermission,
        () => remove(page, `/permissions/${encodeURIComponent(principal)}`, settings))}
    </div>`
  const content = () => {
    if (permissions === null) return denied('the permissions', null, 'messaging.topics.describe')
    const list = Object.entries(permissions)
    if (list.length) return html`<div class="rows-list">${list.map(row)}</div>`
    return html`<p class="muted">None on this topic. Roles of the organization apply here too.</p>`
  }
  return html`
    <section class="card">
      <header>
        <h2>Permissions</h2>
        <span class="actions">${button('Grant', { icon: 'plus', permission: managePermission, onclick: grant })}</span>
      </header>
      ${content()}
    </section>`
}

function terminationCard({ client, path, topic }) {
  const terminate = () => confirm({
    title: `Terminate ${topic.topic}?`,
    name: topic.topic,
    action: 'Terminate',
    text: 'No more messages can be produced. Stored messages can still be consumed. You cannot undo this.',
    run: async () => {
      await client.call('POST', path('/terminate'))
      toast(`${topic.topic} was terminated.`)
    },
  })
  const terminateButton = button('Terminate the topic', {
    kind: 'danger',
    permission: managePermission,
    disabled: topic.partitions > 0,
    onclick: terminate,
  })
  return html`
    <section class="card">
      <header><h2>Termination</h2><span class="actions">${terminateButton}</span></header>
      <p class="muted">A terminated topic accepts no more messages. Its messages can still be read.</p>
    </section>`
}
