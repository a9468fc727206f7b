// Package signin signs requests to HTTP servers (transport.Authorizer): with a
// fixed token, one from the environment or a command, client credentials or an
// identity provider's grant (the extensions in ext-auth), or a person's sign-in
// by the MCP authorization specification (2025-11-25 and 2026-07-28
// basic/authorization), for which it uses the auth and oauthex packages of the
// official SDK.
//
// It imports transport, the SDK's auth packages, oauth2, jwt and go-keyring.
// Nothing in it opens a browser or asks a person but OAuth.Login, which is only
// called because a person wants it; everything else returns a NeedLogin. Tokens
// and keys are never logged and never part of an error.
package signin
