// The registry under test.
const url = process.env.FRESHET_URL
const token = process.env.FRESHET_TOKEN
if (!url || !token) {
  console.error('FRESHET_URL and FRESHET_TOKEN are not set')
  process.exit(2)
}
module.exports = { url, token }
