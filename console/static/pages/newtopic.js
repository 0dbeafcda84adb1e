// The forms that create a topic and a namespace.
import { html } from '../lib/html.js'
import { formDialog, toast } from '../lib/dialog.js'
import { field, input } from '../lib/fields.js'
import { go, link } from '../lib/router.js'

/** Creates a topic and opens its page. */
export async function newTopic({ client, org }, defaultNamespace, done) {
  const created = await formDialog({
    title: 'New topic',
    values: { ns: defaultNamespace, name: '', partitions: '0' },
    view: (v, ctl) => html`
      ${field('Name',
        input(v, 'name', ctl, { required: true, autofocus: true, maxlength: 512, placeholder: 'orders' }))}
      <div class="fields">
        ${field('Namespace',
          input(v, 'ns', ctl, { required: true, pattern: '[^\\/]+\\/[^\\/]+', title: 'tenant/namespace' }),
          'tenant/namespace; it must exist')}
        ${field('Partitions', input(v, 'partitions', ctl, { type: 'number', min: 0, max: 1024, required: true }),
          '0: not partitioned. You can add partitions later, but not remove them.')}
      </div>`,
    run: async v => {
      const [tenant, namespace] = v.ns.split('/')
      const n = Number(v.partitions)
      const url = client.topic(tenant, namespace, v.name, n ? '/partitions' : '')
      await client.call('PUT', url, n ? { body: String(n), contentType: 'application/json' } : {})
      toast(`${v.name} was created.`)
      return [tenant, namespace, v.name]
    },
  })
  if (!created) return
  done()
  go(link(org, 'topics', [client.name, ...created]))
}

/** Creates a namespace, with its tenant if needed, and opens it in the list. */
export async function newNamespace({ client, org }, done) {
  const created = await formDialog({
    title: 'New namespace',
    values: { tenant: 'public', namespace: '' },
    view: (v, ctl) => html`
      <div class="fields">
        ${field('Tenant', input(v, 'tenant', ctl, { required: true, maxlength: 255 }),
          'A missing tenant is created too, if your role allows it.')}
        ${field('Namespace', input(v, 'namespace', ctl, { required: true, autofocus: true, maxlength: 255 }))}
      </div>`,
    run: async v => {
      await createTenant(client, v.tenant)
      const path = [v.tenant, v.namespace].map(encodeURIComponent).join('/')
      await client.call('PUT', `${client.admin}/namespaces/${path}`)
      const name = `${v.tenant}/${v.namespace}`
      toast(`${name} was created.`)
      return name
    },
  })
  if (!created) return
  done()
  go(link(org, 'topics', [client.name], { ns: created }))
}

/** Creates a tenant unless it exists. */
async function createTenant(client, name) {
  const tenants = await client.get(`${client.admin}/tenants`).catch(() => [])
  if (tenants.includes(name)) return
  try {
    await client.call('PUT', `${client.admin}/tenants/${encodeURIComponent(name)}`, {
      body: { adminRoles: [], allowedClusters: [client.name] },
    })
  } catch (e) {
    if (e.status !== 409) throw e
  }
}
