// The policies of a topic. A topic without its own value uses the value of its namespace.
import { html, nothing } from '../lib/html.js'
import { formDialog, toast } from '../lib/dialog.js'
import { field, input, select } from '../lib/fields.js'
import { bytes, count, duration } from '../lib/format.js'

const strategies = [
  'UNDEFINED', 'ALWAYS_COMPATIBLE', 'ALWAYS_INCOMPATIBLE', 'BACKWARD', 'FORWARD', 'FULL', 'BACKWARD_TRANSITIVE',
  'FORWARD_TRANSITIVE', 'FULL_TRANSITIVE',
]

function formatRetention(r) {
  if (!r) return '–'
  const time = r.retentionTimeInMinutes < 0 ? 'no time limit' : duration(r.retentionTimeInMinutes * 60)
  const size = r.retentionSizeInMB < 0 ? 'no size limit' : bytes(r.retentionSizeInMB * 2 ** 20)
  return `${time}, ${size}`
}

function formatDelayed(d) {
  if (!d) return '–'
  return d.active ? 'allowed' : 'off'
}

const limit = (v, key, ctl) => input(v, key, ctl, { type: 'number', min: -1, required: true })
const yesOrNo = (v, ctl) => select(v, 'value', ctl, [['true', 'Yes'], ['false', 'No']])
const positive = (v, ctl) => input(v, 'value', ctl, { type: 'number', min: 0, required: true })

// A number or a boolean: the text of the control is its JSON.
const plain = { read: applied => ({ value: String(applied ?? '') }), write: v => JSON.parse(v.value) }

/**
 * The policies: name (in the path), title, text, and format(value). control(v, ctl), or
 * fields(v, ctl) for several, changes the values that read(applied) returns. The result of
 * write(v, applied) is sent.
 */
export const policies = [
  {
    name: 'retention',
    title: 'Retention',
    text: 'Acknowledged messages are kept up to these limits.',
    format: formatRetention,
    read: r => ({ minutes: String(r?.retentionTimeInMinutes ?? 10080), mb: String(r?.retentionSizeInMB ?? 10240) }),
    fields: (v, ctl) => html`
      <div class="fields">
        ${field('Minutes', limit(v, 'minutes', ctl), '-1: no limit')}
        ${field('MB', limit(v, 'mb', ctl), '-1: no limit')}
      </div>`,
    write: v => ({ retentionTimeInMinutes: +v.minutes, retentionSizeInMB: +v.mb }),
  },
  {
    name: 'messageTTL',
    title: 'Time to live',
    text: 'Unacknowledged messages are discarded after this time.',
    format: n => n ? `${count(n)} s` : 'none',
    control: positive,
    ...plain,
  },
  {
    name: 'deduplicationEnabled',
    title: 'Deduplication',
    text: 'Discards a message that a producer sends again with the same sequence number.',
    format: b => b ? 'on' : 'off',
    control: yesOrNo,
    ...plain,
  },
  {
    name: 'maxMessageSize',
    title: 'Maximum message size',
    text: '',
    format: n => n ? bytes(n) : 'the server’s limit',
    control: positive,
    ...plain,
  },
  {
    name: 'maxUnackedMessagesOnSubscription',
    title: 'Maximum leased messages',
    text: 'Per subscription.',
    format: n => n ? count(n) : '–',
    control: positive,
    ...plain,
  },
  {
    name: 'delayedDelivery',
    title: 'Delayed delivery',
    text: '',
    format: formatDelayed,
    control: yesOrNo,
    read: applied => ({ value: String(applied?.active ?? true) }),
    write: (v, applied) => ({ active: v.value === 'true', tickTime: applied?.tickTime ?? 1000 }),
  },
  {
    name: 'schemaCompatibilityStrategy',
    title: 'Schema compatibility',
    text: '',
    format: s => s || '–',
    control: (v, ctl) => select(v, 'value', ctl, strategies.map(s => [s])),
    read: plain.read,
    write: v => v.value,
  },
  {
    name: 'schemaValidationEnforced',
    title: 'Schema validation of payloads',
    text: '',
    format: b => b ? 'yes' : 'no',
    control: yesOrNo,
    ...plain,
  },
  {
    name: 'require',
    title: 'Contract',
    text: 'An expression that must be true for every message, such as payload.total >= 0. Others are rejected. ' +
      'Empty accepts all.',
    format: e => e || 'none',
    control: (v, ctl) => input(v, 'value', ctl, { maxlength: 2048 }),
    read: plain.read,
    write: v => v.value,
  },
]

/** Whether a topic has its own value of a policy. */
export const isSet = x => x !== null && x !== '' && x !== undefined && x !== 'UNDEFINED'

/** Changes a policy of the topic with a form. */
export const changePolicy = (page, policy, applied, done) => formDialog({
  title: policy.title,
  values: policy.read(applied),
  action: 'Save',
  view: (v, ctl) => html`
    ${policy.text ? html`<p class="muted">${policy.text}</p>` : nothing}
    ${policy.fields ? policy.fields(v, ctl) : field(policy.title, policy.control(v, ctl))}`,
  run: async v => {
    const body = JSON.stringify(policy.write(v, applied))
    await page.client.call('POST', page.path(`/${policy.name}`), { body, contentType: 'application/json' })
    toast(`${policy.title} was saved.`)
    done()
  },
})
