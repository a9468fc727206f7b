package signin

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const (
	assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
	assertionLife = 2 * time.Minute // it is used at once
	keyFileSize   = 64 << 10
)

// assertion signs the JWT by which a client makes itself known (private_key_jwt,
// RFC 7523 sections 2.2 and 3). It is for the authorization server alone, by
// its issuer: a token endpoint's address could be another server's word. The
// key is read each time, so that a renewed one is taken.
func assertion(conf Config, meta *oauthex.AuthServerMeta) (string, error) {
	if m := meta.TokenEndpointAuthMethodsSupported; len(m) > 0 && !slices.Contains(m, "private_key_jwt") {
		return "", fmt.Errorf("the authorization server takes no signed assertions (private_key_jwt), only %.100s", strings.Join(m, ", "))
	}
	key, err := loadKey(conf.PrivateKey)
	if err != nil {
		return "", err
	}
	method, err := signingMethod(key, meta.TokenEndpointAuthSigningAlgValuesSupported)
	if err != nil {
		return "", err
	}
	now := conf.Now()
	t := jwt.NewWithClaims(method, jwt.MapClaims{
		"iss": conf.ClientID, "sub": conf.ClientID, "aud": meta.Issuer,
		"iat": now.Unix(), "exp": now.Add(assertionLife).Unix(), "jti": uuid.NewString(),
	})
	if conf.KeyID != "" {
		t.Header["kid"] = conf.KeyID
	}
	signed, err := t.SignedString(key)
	if err != nil {
		return "", fmt.Errorf("the private key %s cannot sign: %w", conf.PrivateKey, err)
	}
	return signed, nil
}

// signingMethod is the first of the key's that the authorization server takes;
// one that names none takes the first.
func signingMethod(key crypto.Signer, taken []string) (jwt.SigningMethod, error) {
	var own []jwt.SigningMethod
	switch k := key.(type) {
	case *rsa.PrivateKey:
		own = []jwt.SigningMethod{jwt.SigningMethodRS256, jwt.SigningMethodPS256, jwt.SigningMethodRS384, jwt.SigningMethodPS384,
			jwt.SigningMethodRS512, jwt.SigningMethodPS512}
	case *ecdsa.PrivateKey:
		switch k.Curve {
		case elliptic.P256():
			own = []jwt.SigningMethod{jwt.SigningMethodES256}
		case elliptic.P384():
			own = []jwt.SigningMethod{jwt.SigningMethodES384}
		case elliptic.P521():
			own = []jwt.SigningMethod{jwt.SigningMethodES512}
		}
	case ed25519.PrivateKey:
		own = []jwt.SigningMethod{jwt.SigningMethodEdDSA}
	}
	for _, m := range own {
		if len(taken) == 0 || slices.Contains(taken, m.Alg()) {
			return m, nil
		}
	}
	return nil, fmt.Errorf("the private key signs in no way that the authorization server takes (%.100s)", strings.Join(taken, ", "))
}

// loadKey reads the private key in a PEM file: PKCS #8, or as openssl writes RSA
// and EC keys. No error repeats what is in the file.
func loadKey(path string) (crypto.Signer, error) {
	if strings.Contains(path, "-----BEGIN") {
		return nil, errors.New("private_key is the name of a file, not the key itself")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("the private key cannot be read: %w", err)
	}
	defer f.Close()
	rest, err := io.ReadAll(io.LimitReader(f, keyFileSize))
	if err != nil {
		return nil, fmt.Errorf("the private key cannot be read: %w", err)
	}
	for {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return nil, fmt.Errorf("%s holds no private key in PEM form", path)
		}
		var key any
		switch {
		case block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "":
			return nil, fmt.Errorf("the private key in %s is encrypted; mcptasks takes one that is not, in a file that only you can read", path)
		case block.Type == "PRIVATE KEY":
			key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
		case block.Type == "RSA PRIVATE KEY":
			key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
		case block.Type == "EC PRIVATE KEY":
			key, err = x509.ParseECPrivateKey(block.Bytes)
		default:
			continue // a certificate beside it, or the curve's name
		}
		signer, ok := key.(crypto.Signer)
		if err != nil || !ok {
			return nil, fmt.Errorf("the private key in %s cannot be read", path)
		}
		if k, ok := key.(*rsa.PrivateKey); ok && k.N.BitLen() < 2048 { // RFC 7518 section 3.3
			return nil, fmt.Errorf("the private key in %s has %d bits; an RSA key needs 2048", path, k.N.BitLen())
		}
		return signer, nil
	}
}
