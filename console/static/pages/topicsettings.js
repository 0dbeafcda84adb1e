// The schema of a topic, and its settings: partitions, policies, properties, permissions.
import { html, nothing } from '../lib/html.js'
import { link } from '../lib/router.js'
import { bytes, count, span } from '../lib/format.js'
import { update } from '../lib/store.js'
import { confirm, toast } from '../lib/dialog.js'
import { diffView, textDiff } from '../lib/diff.js'
import { ago, badge, button, codeBlock, copyText, denied, empty, failure, field, loading } from '../lib/widgets.js'
import { input, select } from '../lib/objects.js'
import { asked, form, shownOr, streamName } from '../lib/plane.js'

export const indented = text => { try { return JSON.stringify(JSON.parse(text), null, 2) } catch { return text } }

export function schemaTab(page) {
  const { at, t, org } = page
  const root = `${at.admin}/schemas/${[t.tenant, t.namespace, t.topic].map(encodeURIComponent).join('/')}`
  const versions = asked(async () => (await at.get(`${root}/schemas`, { background: true })).getSchemaResponses.sort((a, b) => b.version - a.version))
  const subjects = asked(() => at.get(`${at.registry}/subjects`, { background: true }))
  let begun = false, chosen = null, diff = null
  const pick = async v => {
    chosen = v
    diff = null
    const before = versions.data.find(x => x.version < v.version)
    if (before) diff = await textDiff(indented(before.data), indented(v.data))
    update()
  }
  const add = async () => {
    const made = await form({
      title: 'New version of the schema', wide: true, values: { type: versions.data?.[0]?.type ?? 'AVRO', text: versions.data?.[0] ? indented(versions.data[0].data) : '', verdict: null }, action: 'Add',
      view: (v, ctl) => html`${field('Type', select(v, 'type', ctl, ['AVRO', 'JSON', 'PROTOBUF', 'STRING', 'INT32', 'INT64', 'FLOAT', 'DOUBLE', 'BOOLEAN', 'BYTES'].map(x => [x])))}
        ${['AVRO', 'JSON', 'PROTOBUF'].includes(v.type) ? field('Avro definition', html`<textarea name="schema" rows="14" spellcheck="false" .value=${v.text} @input=${e => { v.text = e.target.value; v.verdict = null }}></textarea>`, 'JSON and PROTOBUF topics are described by an Avro record too, as in Pulsar.') : nothing}
        ${versions.data?.length ? html`<div class="cluster"><button type="button" @click=${async () => { try { v.verdict = (await at.call('POST', `${root}/compatibility`, { body: { type: v.type, schema: v.text, properties: {} } })).data } catch (e) { v.verdict = { error: e } } ctl.update() }}>Check</button>
          ${v.verdict ? v.verdict.error ? failure(v.verdict.error) : badge(v.verdict.compatibility ? 'ok' : 'bad', `${v.verdict.compatibility ? 'Compatible' : 'Not compatible'} under ${v.verdict.schemaCompatibilityStrategy}`) : html`<span class="muted small">whether it may follow the last version</span>`}</div>` : nothing}`,
      run: async v => { const { data } = await at.call('POST', `${root}/schema`, { body: { type: v.type, schema: ['AVRO', 'JSON', 'PROTOBUF'].includes(v.type) ? v.text : '', properties: {} } }); toast(`Version ${data.version.version} is in force.`) },
    })
    if (made) { chosen = null; versions.again() }
  }
  const remove = () => confirm({ title: 'Delete the schema?', name: t.topic, text: 'Messages keep their versions and can no longer be decoded by them. The next schema begins with a new version.', run: async () => { await at.call('DELETE', `${root}/schema`); chosen = null; versions.again() } })
  const addButton = () => button('New version', { kind: 'primary', icon: 'plus', permission: 'messaging.schemas.create or messaging.topics.produce', onclick: add })
  const ofRegistry = () => {
    const names = ['key', 'value'].flatMap(k => [`${streamName(t)}-${k}`, `${t.full}-${k}`]).filter(s => subjects.data?.includes(s))
    return html`<section class="card"><h2>In the schema registry</h2>${names.length ? html`<div class="rows-list">${names.map(s => html`<div><a href=${link(org, 'schemas', [at.name, s])}>${s}</a></div>`)}</div>` : html`<p class="muted">No subject that you may read is named after this topic. Serializers register under <a href=${link(org, 'schemas', [at.name], { new: `${streamName(t)}-value` })}><code>${streamName(t)}-value</code></a>.</p>`}</section>`
  }
  return () => {
    if (!begun) { begun = true; versions.again(); subjects.again() }
    return html`<div class="stack">${shownOr(versions.state === 'gone' ? { state: 'ready', data: [] } : versions, 'the schema', 'messaging.schemas.describe', list => {
      const v = chosen ?? list[0]
      if (v && !chosen) pick(v)
      return list.length ? html`<div class="cluster"><p class="muted">The topic's own schema, which every message is stamped with.</p><span class="spacer"></span>${button('Delete', { icon: 'trash', kind: 'danger', permission: 'messaging.schemas.delete', onclick: remove })}${addButton()}</div>
        <div class="grid"><section class="card c4"><h2>Versions</h2><div class="rows-list picks-list">${list.map(x => html`<button type="button" class="plain" aria-pressed=${x === v} @click=${() => pick(x)}><b>Version ${x.version}</b>${badge('', x.type)}<span class="spacer"></span><span class="muted small">${ago(x.timestamp)}</span></button>`)}</div></section>
        <section class="card c8 stack"><h2>Version ${v.version}</h2>${v.data ? codeBlock(indented(v.data), 'Schema') : html`<p class="muted">${v.type} needs no definition.</p>`}${diff ? html`<h3>Changed since the version before</h3>${diffView(diff)}` : nothing}</section></div>`
        : empty({ icon: 'schemas', title: 'The topic has no schema of its own', text: 'Payloads can be anything. With a schema, messages carry its version, and new versions are checked against the old ones.', action: addButton(), command: `curl -X POST -H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json' --data '{"type":"STRING","schema":"","properties":{}}' "$BASE_URL"${root}/schema` })
    }, loading())}${ofRegistry()}</div>`
  }
}

const policies = [
  ['retention', 'Retention', r => r ? `${r.retentionTimeInMinutes < 0 ? 'no limit of time' : span(r.retentionTimeInMinutes * 60)}, ${r.retentionSizeInMB < 0 ? 'no limit of size' : bytes(r.retentionSizeInMB * 2 ** 20)}` : '–', 'Messages that everybody has acknowledged are kept so long.'],
  ['messageTTL', 'Time to live', n => n ? `${count(n)} s` : 'none', 'Unacknowledged messages are given up after it.'],
  ['deduplicationEnabled', 'Deduplication', b => b ? 'on' : 'off', 'Drops what a producer sends twice under one number.'],
  ['maxMessageSize', 'Largest message', n => n ? bytes(n) : 'the server’s limit', ''],
  ['maxUnackedMessagesOnSubscription', 'On lease at most', n => n ? count(n) : '–', 'By one subscription.'],
  ['delayedDelivery', 'Delayed delivery', d => d ? d.active ? 'allowed' : 'off' : '–', ''],
  ['schemaCompatibilityStrategy', 'Schema compatibility', s => s || '–', ''],
  ['schemaValidationEnforced', 'Payloads must fit the schema', b => b ? 'yes' : 'no', ''],
]
const strategies = ['UNDEFINED', 'ALWAYS_COMPATIBLE', 'ALWAYS_INCOMPATIBLE', 'BACKWARD', 'FORWARD', 'FULL', 'BACKWARD_TRANSITIVE', 'FORWARD_TRANSITIVE', 'FULL_TRANSITIVE']

export function settings(page) {
  const { at, t } = page
  let begun = false
  const all = asked(async () => {
    const ask = (rest, otherwise) => at.get(page.path(rest), { background: true }).catch(e => { if (e.status === 403) return otherwise; throw e })
    const [properties, permissions, ...values] = await Promise.all([ask('/properties', {}), ask('/permissions', null), ...policies.flatMap(([leaf]) => [ask(`/${leaf}?applied=true`, null), ask(`/${leaf}`, null)])])
    return { properties: properties ?? {}, permissions, values: Object.fromEntries(policies.map(([leaf], i) => [leaf, { applied: values[2 * i], own: values[2 * i + 1] }])) }
  })
  const own = x => x !== null && x !== '' && x !== undefined && x !== 'UNDEFINED'
  const change = (leaf, title, text) => {
    const { applied } = all.data.values[leaf]
    const start = leaf === 'retention' ? { minutes: String(applied?.retentionTimeInMinutes ?? 10080), mb: String(applied?.retentionSizeInMB ?? 10240) } : { value: leaf === 'delayedDelivery' ? String(applied?.active ?? true) : String(applied ?? '') }
    const yes = [['true', 'Yes'], ['false', 'No']]
    return form({
      title, values: start, action: 'Save',
      view: (v, ctl) => html`${text ? html`<p class="muted">${text}</p>` : nothing}${leaf === 'retention' ? html`<div class="fields">${field('Minutes', input(v, 'minutes', ctl, { type: 'number', min: -1, required: true }), '-1: no limit')}${field('MB', input(v, 'mb', ctl, { type: 'number', min: -1, required: true }), '-1: no limit')}</div>`
        : field(title, leaf === 'schemaCompatibilityStrategy' ? select(v, 'value', ctl, strategies.map(x => [x])) : ['deduplicationEnabled', 'schemaValidationEnforced', 'delayedDelivery'].includes(leaf) ? select(v, 'value', ctl, yes) : input(v, 'value', ctl, { type: 'number', min: 0, required: true }))}`,
      run: async v => {
        const body = leaf === 'retention' ? { retentionTimeInMinutes: +v.minutes, retentionSizeInMB: +v.mb } : leaf === 'delayedDelivery' ? { active: v.value === 'true', tickTime: applied?.tickTime ?? 1000 } : leaf === 'schemaCompatibilityStrategy' ? v.value : JSON.parse(v.value)
        await at.call('POST', page.path(`/${leaf}`), { body: JSON.stringify(body), contentType: 'application/json' })
        toast(`${title} is saved.`)
        all.again()
      },
    })
  }
  const clear = async leaf => { try { await at.call('DELETE', page.path(`/${leaf}`)); all.again() } catch (e) { toast(e.message, 'bad') } }
  const grow = () => form({
    title: 'More partitions', values: { n: String((t.partitions || 1) + 1) }, action: 'Grow',
    view: (v, ctl) => html`<p class="callout warn">Keys move to other partitions, so messages of one key before and after are not in order. Partitions cannot be taken away.</p>${field('Partitions', input(v, 'n', ctl, { type: 'number', min: t.partitions + 1, max: 1024, required: true }))}`,
    run: async v => { await at.call('POST', page.path('/partitions'), { body: String(Number(v.n)), contentType: 'application/json' }); page.stats.again() },
  })
  const property = () => form({
    title: 'Property', values: { key: '', value: '' }, action: 'Save', view: (v, ctl) => html`<div class="fields">${field('Name', input(v, 'key', ctl, { required: true, autofocus: true }))}${field('Value', input(v, 'value', ctl))}</div>`,
    run: async v => { await at.call('PUT', page.path('/properties'), { body: { [v.key]: v.value } }); all.again() },
  })
  const grant = () => form({
    title: 'Allow on this topic', values: { who: '', produce: false, consume: true }, action: 'Allow',
    view: (v, ctl) => html`${field('Who', input(v, 'who', ctl, { required: true, autofocus: true, placeholder: 'account@organization' }), 'A role binding does the same for many topics at once.')}
      ${['produce', 'consume'].map(a => html`<label class="check"><input type="checkbox" .checked=${v[a]} @change=${e => { v[a] = e.target.checked }}> ${a}</label>`)}`,
    run: async v => { await at.call('POST', page.path(`/permissions/${encodeURIComponent(v.who)}`), { body: JSON.stringify(['produce', 'consume'].filter(a => v[a])), contentType: 'application/json' }); all.again() },
  })
  const terminate = () => confirm({ title: `End ${t.topic}?`, name: t.topic, action: 'End it', text: 'Nothing can be produced from then on. What is there can still be consumed. It cannot be undone.', run: async () => { await at.call('POST', page.path('/terminate')); toast(`${t.topic} takes no more messages.`) } })
  const may = 'messaging.topics.update'
  return () => {
    if (!begun) { begun = true; all.again() }
    return shownOr(all, 'the settings', 'messaging.topics.describe', d => html`<div class="grid">
      <section class="card c7"><h2>Policies</h2><div class="rows-list policies">${policies.map(([leaf, title, show, text]) => html`<div><div><b>${title}</b>${text ? html`<p class="muted small">${text}</p>` : nothing}</div><span class="spacer"></span><span class="right">${show(d.values[leaf].applied)}<br><span class="muted small">${own(d.values[leaf].own) ? 'set here' : 'from the namespace'}</span></span>
        <span class="cluster nowrap">${button('', { icon: 'edit', kind: 'ghost square', label: `Change ${title}`, permission: may, onclick: () => change(leaf, title, text) })}${own(d.values[leaf].own) ? button('', { icon: 'x', kind: 'ghost square', label: `Take ${title} from the namespace again`, permission: may, onclick: () => clear(leaf) }) : nothing}</span></div>`)}</div></section>
      <div class="c5 stack">
        <section class="card"><header><h2>Partitions</h2>${t.partitions ? html`<span class="actions">${button('More', { permission: may, onclick: grow })}</span>` : nothing}</header><p>${t.partitions ? html`<b>${t.partitions}</b> <span class="muted">partitions; keys choose among them.</span>` : html`<span class="muted">None: all messages are in one order.</span>`}</p></section>
        <section class="card"><header><h2>Properties</h2><span class="actions">${button('Add', { icon: 'plus', permission: may, onclick: property })}</span></header>${Object.keys(d.properties).length ? html`<div class="rows-list">${Object.entries(d.properties).map(([k, x]) => html`<div><code>${k}</code><span class="spacer"></span>${copyText(x)}${button('', { icon: 'trash', kind: 'ghost square', label: `Delete ${k}`, permission: may, onclick: async () => { try { await at.call('DELETE', page.path(`/properties?key=${encodeURIComponent(k)}`)); all.again() } catch (e) { toast(e.message, 'bad') } } })}</div>`)}</div>` : html`<p class="muted">None.</p>`}</section>
        <section class="card"><header><h2>Permissions</h2><span class="actions">${button('Allow', { icon: 'plus', permission: 'messaging.topics.manage', onclick: grant })}</span></header>
          ${d.permissions === null ? denied('the permissions', null, 'messaging.topics.describe') : Object.keys(d.permissions).length ? html`<div class="rows-list">${Object.entries(d.permissions).map(([who, list]) => html`<div>${copyText(who)}<span class="spacer"></span>${list.map(x => badge('', x))}${button('', { icon: 'trash', kind: 'ghost square', label: `Take it from ${who}`, permission: 'messaging.topics.manage', onclick: async () => { try { await at.call('DELETE', page.path(`/permissions/${encodeURIComponent(who)}`)); all.again() } catch (e) { toast(e.message, 'bad') } } })}</div>`)}</div>` : html`<p class="muted">Nobody by name. Roles of the organization hold here as everywhere.</p>`}</section>
        <section class="card"><header><h2>End</h2><span class="actions">${button('End the topic', { kind: 'danger', permission: 'messaging.topics.manage', disabled: t.partitions > 0, onclick: terminate })}</span></header><p class="muted">An ended topic takes no more messages and can still be read.</p></section>
      </div></div>`, loading(8))
  }
}
