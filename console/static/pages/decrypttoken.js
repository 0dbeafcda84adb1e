// The dialog that decrypts the token of an API key with a private key.
import { html } from '../lib/html.js'
import { codeBlock } from '../lib/copy.js'
import { frame, modal } from '../lib/dialog.js'
import { field } from '../lib/fields.js'
import { dropZone } from '../lib/files.js'
import { decryptJWE } from '../lib/jose.js'
import { failure } from '../lib/widgets.js'

/** Decrypts the token of an existing key. Nothing is sent to the server. */
export function decryptToken(k) {
  let error = null
  let token = ''
  const decrypt = async (pem, ctl) => {
    error = null
    try {
      token = await decryptJWE(k.status.encryptedToken.jwe, pem)
    } catch (e) {
      error = { message: e.message }
    }
    ctl.update()
  }
  const keyInputs = ctl => html`
    ${dropZone('Drop the private key here, or click to choose the file', '.pem,.key', pem => decrypt(pem, ctl))}
    ${field('Or paste it', html`
      <textarea rows="5" spellcheck="false" placeholder="-----BEGIN PRIVATE KEY-----"
        @change=${e => decrypt(e.target.value, ctl)}></textarea>`)}`
  const body = ctl => html`
    <div class="stack">
      <p class="muted">
        Use the private key of the key pair of this API key, as PEM (PKCS #8 or PKCS #1). It stays in this browser.
      </p>
      ${failure(error)}
      ${token ? codeBlock(token, 'Token', 'wrap') : keyInputs(ctl)}
    </div>`
  const close = ctl => {
    token = ''
    ctl.close()
  }
  const buttons = ctl => html`<button type="button" @click=${() => close(ctl)}>Close</button>`
  return modal(ctl => frame(ctl, `Decrypt the token of ${k.metadata.name}`, body(ctl), buttons(ctl)),
    { className: 'wide-box' })
}
