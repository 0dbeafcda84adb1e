// The registry under test.
const url = process.env.FRESHET_SERVER
const token = process.env.FRESHET_TOKEN
if (!url || !token) {
  console.error('FRESHET_SERVER and FRESHET_TOKEN are not set')
  process.exit(2)
}
module.exports = { url, token }
