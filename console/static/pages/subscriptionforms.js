// The forms that create a subscription and reset its position.
import { html, nothing } from '../lib/html.js'
import { formDialog, toast } from '../lib/dialog.js'
import { field, input, select } from '../lib/fields.js'
import { setQuery } from '../lib/router.js'

const json = value => ({ body: JSON.stringify(value), contentType: 'application/json' })
const subscriptionPath = (page, name, rest = '') => page.path(`/subscription/${encodeURIComponent(name)}${rest}`)

/** The body that creates a subscription: its position alone, or with further settings. */
function subscriptionBody(v) {
  const more = {}
  if (v.lease) more.ackTimeoutMillis = v.lease * 1000
  if (v.filter) more.filter = v.filter
  if (v.deliveries) {
    more.deadLetterPolicy = { maxRedeliverCount: Math.max(0, v.deliveries - 1) }
    if (v.deadLetters) more.deadLetterPolicy.deadLetterTopic = v.deadLetters
  }
  return Object.keys(more).length ? { position: v.position, ...more } : v.position
}

/** Creates a subscription and selects it. */
export async function newSubscription(page) {
  const { client, topic, stats } = page
  const nameOptions = {
    required: true,
    autofocus: true,
    pattern: '[\\-=:.\\w]{1,255}',
    title: 'Letters, digits and - = : . _',
  }
  const positions = [['latest', 'Latest: messages from now on'], ['earliest', 'Earliest: all stored messages']]
  const created = await formDialog({
    title: 'New subscription',
    values: { name: '', position: 'latest', lease: '', deliveries: '', deadLetters: '', filter: '' },
    view: (v, ctl) => html`
      ${field('Name', input(v, 'name', ctl, nameOptions))}
      ${field('Start position', select(v, 'position', ctl, positions))}
      <div class="fields">
        ${field('Lease in seconds', input(v, 'lease', ctl, { type: 'number', min: 1, max: 43200, placeholder: '30' }),
          'A message that is not acknowledged within the lease is redelivered.')}
        ${field('Deliveries before a message becomes a dead letter',
          input(v, 'deliveries', ctl, { type: 'number', min: 1, placeholder: 'unlimited' }))}
      </div>
      ${filterField(v, ctl)}
      ${v.deliveries ? field('Dead letter topic', input(v, 'deadLetters', ctl, {
        placeholder: `${topic.topic}-${v.name || '<subscription>'}-DLQ`,
      })) : nothing}`,
    run: async v => {
      await client.call('PUT', subscriptionPath(page, v.name), json(subscriptionBody(v)))
      toast(`${v.name} was created.`)
      return v.name
    },
  })
  if (!created) return
  await stats.reload()
  setQuery({ sub: created })
}

const filterField = (v, ctl, options = {}) => field('Filter', input(v, 'filter', ctl, {
  placeholder: 'payload.total > 100',
  maxlength: 4096,
  ...options,
}), 'An expression (CEL). Messages that it does not select are acknowledged without a delivery.')

/** Changes the filter of a subscription. */
export const changeFilter = (page, s, done) => formDialog({
  title: `Change the filter of ${s.name}`,
  values: { filter: s.filter ?? '' },
  action: 'Change',
  view: (v, ctl) => html`
    <p>
      The filter applies to messages that were not delivered yet. Messages that were passed over before are not
      delivered, unless you reset the position. An empty filter selects all messages.
    </p>
    ${filterField(v, ctl, { autofocus: true })}`,
  run: async v => {
    await page.client.call('PUT', subscriptionPath(page, s.name, '/filter'), json({ filter: v.filter }))
    toast(v.filter ? `The filter of ${s.name} was changed.` : `The filter of ${s.name} was removed.`)
    done()
  },
})

/** Resets the position of a subscription. */
export const resetSubscription = (page, name, done) => formDialog({
  title: `Reset the position of ${name}`,
  values: { to: 'earliest', time: '' },
  action: 'Reset',
  view: (v, ctl) => html`
    <p>
      Messages before the position count as acknowledged. Messages after it are delivered, even if they were
      delivered before. All leases end.
    </p>
    ${field('Position', select(v, 'to', ctl, [
      ['earliest', 'Earliest: the oldest stored message'],
      ['latest', 'Latest: skip all messages'],
      ['time', 'A time'],
    ]))}
    ${v.to === 'time'
      ? field('Time', input(v, 'time', ctl, { type: 'datetime-local', required: true }), 'In your time zone, not UTC.')
      : nothing}`,
  run: async v => {
    const { client } = page
    if (v.to === 'time') {
      await client.call('POST', subscriptionPath(page, name, `/resetcursor/${new Date(v.time).getTime()}`))
    } else {
      await client.call('POST', subscriptionPath(page, name, '/resetcursor'), json(v.to))
    }
    toast(`The position of ${name} was reset.`)
    done()
  },
})
