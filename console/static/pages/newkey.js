// The dialog that creates an API key. The browser creates the key pair, the server
// encrypts the token with the public key, and the browser decrypts it. The private key is
// never sent, and is lost when the dialog closes.
import { html, nothing } from '../lib/html.js'
import { call, resource } from '../lib/api.js'
import { namesAt } from '../lib/bindings.js'
import { codeBlock } from '../lib/copy.js'
import { frame, modal } from '../lib/dialog.js'
import { field, input, namePattern, nameTitle, select } from '../lib/fields.js'
import { download } from '../lib/files.js'
import { decryptJWE, newKeyPair } from '../lib/jose.js'
import { LiveList } from '../lib/watch.js'
import { failure } from '../lib/widgets.js'

const plural = 'apikeys'
const day = 86400000
const lifetimes = [['30', '30 days'], ['90', '90 days'], ['365', 'a year'], ['', 'never']]
const keySizes = [['2048', 'RSA 2048'], ['3072', 'RSA 3072'], ['4096', 'RSA 4096']]

function keyOf(v, publicPEM) {
  const expires = () => new Date(Date.now() + v.days * day).toISOString().replace(/\.\d+Z/, 'Z')
  return {
    apiVersion: 'cloud.vendor.io/v1alpha1',
    kind: 'APIKey',
    metadata: { name: v.name },
    spec: {
      serviceAccountName: v.account,
      ...(v.instance && { instanceName: v.instance }),
      ...(v.description && { description: v.description }),
      ...(v.days && { expirationTime: expires() }),
      encryptionKey: { pem: publicPEM },
    },
  }
}

/** Waits for the encrypted token of a key that the server has not issued yet. */
function issuedToken(org, name, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(
      'The server did not issue the key within 20 seconds. The private key is lost when this dialog closes: ' +
      'delete this API key and create another one.')), 20000)
    signal.addEventListener('abort', () => reject(new DOMException('the dialog was closed', 'AbortError')))
    const onchange = list => {
      const jwe = list.items[0]?.status?.encryptedToken?.jwe
      if (!jwe) return
      clearTimeout(timer)
      resolve(jwe)
    }
    new LiveList(resource(org, plural), signal, { selector: `metadata.name=${name}`, onchange })
  })
}

/** Creates an API key with a form, and shows its token once. */
export async function newKey(org, account = '') {
  const [accounts, instances] = await Promise.all(
    ['serviceaccounts', 'messaginginstances'].map(kind => namesAt(resource(org, kind))))
  const v = {
    name: '', account: account || accounts[0] || '', instance: instances[0] ?? '', days: '90', description: '',
    bits: '2048',
  }
  /** step: form, working, done. */
  const s = { step: 'form', progress: '', error: null, privatePEM: '', token: '', saved: false }

  const run = async ctl => {
    const report = text => {
      s.progress = text
      ctl.update()
    }
    s.step = 'working'
    s.error = null
    try {
      report('Creating the key pair in this browser…')
      const pair = await newKeyPair(+v.bits)
      s.privatePEM = pair.privatePEM
      report('Sending the public key…')
      const url = `${resource(org, plural)}?fieldManager=freshet-console`
      const { data } = await call('POST', url, { body: keyOf(v, pair.publicPEM) })
      report('Waiting for the token…')
      const jwe = data.status?.encryptedToken?.jwe ?? await issuedToken(org, v.name, ctl.signal)
      report('Decrypting the token in this browser…')
      s.token = await decryptJWE(jwe, s.privatePEM)
      s.step = 'done'
    } catch (e) {
      s.error = e
      s.step = 'form'
    }
    ctl.update()
  }

  const views = {
    form: ctl => formView(v, ctl, accounts, instances, s.error),
    working: () => workingView(s.progress),
    done: ctl => doneView(org, v.name, s, ctl),
  }
  const buttons = {
    form: ctl => html`
      <button type="button" @click=${() => ctl.close()}>Cancel</button>
      <button class="primary" ?disabled=${!isSecureContext}>Create the key</button>`,
    working: () => nothing,
    done: ctl => html`
      <button type="button" class="primary" @click=${() => ctl.close(v.name)}>
        ${s.saved ? 'Done' : 'I have the token'}
      </button>`,
  }
  const name = await modal(ctl => {
    const title = s.step === 'done' ? 'Your new API key' : 'New API key'
    const submit = e => {
      if (s.step === 'form' && e.target.reportValidity()) run(ctl)
    }
    return frame(ctl, title, html`<div class="stack">${views[s.step](ctl)}</div>`, buttons[s.step](ctl), { submit })
  }, { className: 'wide-box', dismissable: false })
  s.privatePEM = ''
  s.token = ''
  return name
}

const insecureWarning = () => html`
  <p class="callout warn">
    This page was not loaded over HTTPS, so the browser cannot create keys. Open the HTTPS address, or localhost.
  </p>`

function formView(v, ctl, accounts, instances, error) {
  const scopes = [...instances.map(i => [i, `Instance ${i}`]), ['', 'The whole organization']]
  const scopeHint = v.instance
    ? 'Only for topics and schemas of this instance.'
    : 'Also for the resource API. Create such a key only if a program needs it.'
  return html`
    ${failure(error)}
    ${isSecureContext ? nothing : insecureWarning()}
    ${field('Name',
      input(v, 'name', ctl, { required: true, autofocus: true, pattern: namePattern, title: nameTitle }))}
    <div class="fields">
      ${field('Service account', select(v, 'account', ctl, accounts.map(a => [a])),
        'The key has the permissions of this account.')}
      ${field('Valid for', select(v, 'instance', ctl, scopes), scopeHint)}
    </div>
    <div class="fields">
      ${field('Expires after', select(v, 'days', ctl, lifetimes))}
      ${field('Key size', select(v, 'bits', ctl, keySizes))}
    </div>
    ${field('Description', input(v, 'description', ctl, { maxlength: 1024, placeholder: 'Where it is used' }))}`
}

const workingView = progress => html`
  <div class="empty plain" role="status">
    <div class="spinner"></div>
    <h2>${progress}</h2>
    <p>The private key stays in this browser.</p>
  </div>`

const usage = org => `TOKEN=…   # the token above
curl -H "Authorization: Bearer $TOKEN" \\
  -H 'Content-Type: application/octet-stream' --data 'hello' \\
  ${location.origin}/clusters/${org}/CLUSTER/admin/rest/topics/v1/public/default/TOPIC/message`

function doneView(org, name, s, ctl) {
  const save = (extension, content, type) => () => {
    s.saved = true
    download(`${org}-${name}.${extension}`, content, type)
    ctl.update()
  }
  const environment = `FRESHET_SERVER=${location.origin}\nFRESHET_ORGANIZATION=${org}\nFRESHET_API_KEY=${s.token}\n`
  return html`
    <p class="callout ok">
      <span>
        <b>${name} was issued.</b> The token is shown only once. Save the token, or save the private key to decrypt
        the token again later. Without one of them the token cannot be recovered.
      </span>
    </p>
    <div class="field"><span>Token</span>${codeBlock(s.token, 'Token', 'wrap')}</div>
    <div class="cluster">
      <button type="button" @click=${save('env', environment, 'text/plain')}>Download .env</button>
      <button type="button" @click=${save('pem', s.privatePEM, 'application/x-pem-file')}>Save the private key</button>
    </div>
    <div class="field"><span>Usage</span>${codeBlock(usage(org), 'Usage')}</div>`
}
