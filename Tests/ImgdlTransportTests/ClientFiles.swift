/// Certificates and keys of many kinds, in PEM, made with OpenSSL for these tests alone. The password of those that have one
/// is `password`.
enum ClientFiles {
    static let password = "open sesame"
    static let rsa = """
        -----BEGIN CERTIFICATE-----
        MIIB9DCCAV2gAwIBAgIUXyV+tFiErxuaDGYPZEP9i5GFQtYwDQYJKoZIhvcNAQEL
        BQAwDDEKMAgGA1UEAwwBcjAeFw0yNjExMjYxMTE0MTZaFw0zNjExMjMxMTE0MTZa
        MAwxCjAIBgNVBAMMAXIwgZ8wDQYJKoZIhvcNAQEBBQADgY0AMIGJAoGBAL+RPJE/
        Bs++vVst5pK77U1A4SQcGH15PbcFBy1rPR9o2v/zcd+xRdO9aAARz6M4EYxgtgQN
        IwLOuQ+OSHGkpUTP8P1RUCsZyhmlkiMRxpP7RdseK/Y+eftb6dreDVzZHnOk/PzD
        OkZtIIAQ1kwd+WylpfoXOPCendF7cfMFKy8XAgMBAAGjUzBRMB0GA1UdDgQWBBSE
        Pjh/AB0Q64dVIKEMYGicNMndfTAfBgNVHSMEGDAWgBSEPjh/AB0Q64dVIKEMYGic
        NMndfTAPBgNVHRMBAf8EBTADAQH/MA0GCSqGSIb3DQEBCwUAA4GBAEZBeebl7/zI
        Qx4CA0lkDmRvQdr98BPhAKlaw2dvyNQeaAdUlJKMNmd9XaZcOSPzPmOcqemUWBCS
        ftPwJJIXASiikZqdOdu18VDOQEYhXBLhwHywIs5WTkkedjwLmVRXOjoFuqWPj8Qy
        +92LU08w/FfyYdEnxcht1pakmQ99ObvR
        -----END CERTIFICATE-----

        """
    static let rsaKey = """
        -----BEGIN PRIVATE KEY-----
        MIICeAIBADANBgkqhkiG9w0BAQEFAASCAmIwggJeAgEAAoGBAL+RPJE/Bs++vVst
        5pK77U1A4SQcGH15PbcFBy1rPR9o2v/zcd+xRdO9aAARz6M4EYxgtgQNIwLOuQ+O
        SHGkpUTP8P1RUCsZyhmlkiMRxpP7RdseK/Y+eftb6dreDVzZHnOk/PzDOkZtIIAQ
        1kwd+WylpfoXOPCendF7cfMFKy8XAgMBAAECgYEAvc7Cy0s+jYJ5DinJpqPLeVsK
        eIPaBCCn9Hpn5Sm3MzLqouXsc26rOCQYMtFzAU7hnEyKrDLz+KkpFe+teeRf1rj3
        x/+cfFFWVw4HyUt5kB83ulXGB/LcrN0sU4bAQBmjrOiGYoOuncEen5jf41a73N7J
        UAZlvZY43NH2/Z2ZfNkCQQDyF+11/U3xFoEuKc7NVXGBnoWO/WPUL2nGnHYAPbaK
        wyk11b14X9tNdEM4omaq09YSSu6ZqCb+ktunONDDJcQlAkEAypJNxksByNzxJDcu
        j6jctRUAd+qWFgQYaPsnF7XMxMN+hTvKe46gwdmYnSXFEoOGgPm2LI/acpLDm34j
        rcRDiwJBAKvUd+LrK0sXIhFV80aigrHxhfJ7v0N3c6hYnRiGtO3An5tqXdT2lH1h
        K+Uiv6Q4PxU0wi2lwCeorOb/2IzqXVECQHz58HPjONGkxj1ysg49vxUVRPm2yCwD
        ENBMCx1Ms229suQeNFkwcKvIRKjHcaNvc99EsIkjo0FGnNnk47xENusCQQCYlyet
        f9MJP8/5P/+7MAr2PVvg6kLeP0V3/le5RhdFqwrUQOfbL93YMLtK1ijKAYPJcnnj
        TH4GlSRU5YIhK0T8
        -----END PRIVATE KEY-----

        """
    /// In the format of before PKCS #8.
    static let encryptedRSAKey = """
        -----BEGIN RSA PRIVATE KEY-----
        Proc-Type: 4,ENCRYPTED
        DEK-Info: AES-128-CBC,A74A247807FBEC34C9A303300C536504

        Gb9CEDIYNkPO2zMEQQXi+C1SKLmoLkJkFJ9AqMv7Q52Tu4YhXZEnT1UqO78uyMff
        mhEsG83wuw8bf7eb/S2UTxIc/BWVjlw/uDFUyVflpZRf3DGzHnaivw+hvY01Sl5w
        7QuSA4Ml8mKRtiPT4cvs1eEI9Vw4MqL99l0EoKup4nAJag4JTAT3TH4rPkDraqLC
        5qBfPXO76QqtQb0unq8MbCE5DXBVSLzl2Pw27qp3OCQZ4LNWiJJVsrPAwVZ60NWK
        NTgMXRAoIafkINkoKZkDM6Nx3woSWrhRorhOwFFgt3cuZJwY7ZSWQQzg3gsP8SDn
        UVJC4+pq62vry1EriD42tjJn3dx25H3ajgh3hk56O+aSM5rYr07nSOVJI5le1kP7
        CAq7acs9Idqm7dysNmexTvpJExihSvYrsgdOk0eVZy5hCej3GzbVMFssGcc3u36p
        VwtJm1vfyKuuF2Tq3mtUydhIsIuOsQR3U6q3e1x2eB3RjTzAWLeF4CUpvupdNOEq
        khtrOKKVSzU3TkYkVTt1nYyuSgW4N9dkvOlnRIq/+LFh2vo7Xl4DZK7hfNdjfgQN
        wIv/L9m1RxF6GGl40DiG4luGiLbUcHmAUscM/aFAqgcnMw4gQcu7eF4/iY8Y2mr2
        QDZLBJz4+GH3LdnF6PsgIxHBTpvx7qTAR13ZcNbUQp9qezEdyhkvc7sgJTbiU1a8
        UoOgcuYnvEo6gKFbLB10DpAr2NJovip/4aSXr06iJ1vZOdcBO1xk1u9/H6Trzk1T
        gnkv+2f3JBpynYPOBK02xI+4Y+kJNo5cuQ5pLlaXWbPJEQsnvrh4qdMW8CSH6zGQ
        -----END RSA PRIVATE KEY-----

        """
    static let ec = """
        -----BEGIN CERTIFICATE-----
        MIIBbjCCAROgAwIBAgIUEEwDGNf5gvOzhTvJVHUBfbLFxPowCgYIKoZIzj0EAwIw
        DDEKMAgGA1UEAwwBZTAeFw0yNjExMjYxMTE0MTZaFw0zNjExMjMxMTE0MTZaMAwx
        CjAIBgNVBAMMAWUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAATCh67NhuaAIKc6
        CEkvRSO7OpuJgBPghzXYJxwF3moUzLchSo5P589HgZGjBzHrI9C6Yvy+bewfwBdi
        tvQP4J09o1MwUTAdBgNVHQ4EFgQU5tmYBQHMcIviAb/gSQ3s502dol8wHwYDVR0j
        BBgwFoAU5tmYBQHMcIviAb/gSQ3s502dol8wDwYDVR0TAQH/BAUwAwEB/zAKBggq
        hkjOPQQDAgNJADBGAiEA6b1Rk22sGmjbXIrlKP2+YS7NGjZpY0C/38erCW4JkSYC
        IQDHRJNRXAvwLf1Zp9jPGTtwUDUCPCl8IY3gdWV0zgKH/A==
        -----END CERTIFICATE-----

        """
    /// Behind the parameters of its curve.
    static let ecKeyWithParameters = """
        -----BEGIN EC PARAMETERS-----
        BggqhkjOPQMBBw==
        -----END EC PARAMETERS-----
        -----BEGIN EC PRIVATE KEY-----
        MHcCAQEEIMeHdA5PJcNS5ewdxnnAXBuZsDhzyq3d5N+DWjSMPwyVoAoGCCqGSM49
        AwEHoUQDQgAEwoeuzYbmgCCnOghJL0UjuzqbiYAT4Ic12CccBd5qFMy3IUqOT+fP
        R4GRowcx6yPQumL8vm3sH8AXYrb0D+CdPQ==
        -----END EC PRIVATE KEY-----

        """
    /// PKCS #8, AES.
    static let encryptedECKey = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAj8LvqVkowZUAICCAAw
        DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEHKBUcGZE6XlHLnEzrWfpS4EgZAj
        LnuznFJhE3zBZb91JIlg0/sxRAN/f+lnVkw6Hwrko/Ml5CQliHwe71dIBOZ0y8jO
        d2I33nKw6S3nNSQPBTr5a2CNzPoT3Y+IhzAkhMBHmPbvJ2+ViBCDY33g/BoErgvP
        tgdq24C67hNvcL67sRFsuOXTImR5/uDkHiMOgQO/LO2QAoOMC5JGdZW0Lq4kxAg=
        -----END ENCRYPTED PRIVATE KEY-----

        """
    /// PKCS #8, DES, which OpenSSL 3 has in its legacy provider alone.
    static let oldCipherECKey = """
        -----BEGIN ENCRYPTED PRIVATE KEY-----
        MIGwMBsGCSqGSIb3DQEFAzAOBAixGfEkCw7DhAICCAAEgZA6m65nYYfzDHIHcPyV
        w9iDNmBrZRDqQg9FoOGkaV6VCxbgYyOPyMCie3Gf/LqHzbEUaN93jGU+NjF7oL86
        IXNIsZkik+FTmkxk7rQkkUB6mEEYkbPL3Ja23PHg3WKZ/N6U3mFRC1gBQ1k7XRHC
        yjGpEzvpev7frAt2zZI9lOFfggiqoBF/QfQ9IwhJdTLZkaQ=
        -----END ENCRYPTED PRIVATE KEY-----

        """
    static let ed25519 = """
        -----BEGIN CERTIFICATE-----
        MIIBLDCB36ADAgECAhRp1ZphsPJP8rbef25kvaddbBZ65zAFBgMrZXAwDDEKMAgG
        A1UEAwwBZDAeFw0yNjExMjYxMTE0MTZaFw0zNjExMjMxMTE0MTZaMAwxCjAIBgNV
        BAMMAWQwKjAFBgMrZXADIQBLWbPoYk4/Z4SGUf8HOYUCl0sbZIi+U/N3ZN3EhbJ9
        Z6NTMFEwHQYDVR0OBBYEFGmibUgOF12XjGDFyE/BTf1WKkvXMB8GA1UdIwQYMBaA
        FGmibUgOF12XjGDFyE/BTf1WKkvXMA8GA1UdEwEB/wQFMAMBAf8wBQYDK2VwA0EA
        DpQW25scA8qCMh3dh/i2A2Hg09a+LF0pIPzk7J9RTxXi0H8ffdv0WIiAghTJ9z4a
        DiZFrtPwk+Gi6PznNHKpAw==
        -----END CERTIFICATE-----

        """
    static let ed25519Key = """
        -----BEGIN PRIVATE KEY-----
        MC4CAQAwBQYDK2VwBCIEIM5ScZA4a37qA4iUplCzKDlR0UmMHCIEUUXYjTYeO7A0
        -----END PRIVATE KEY-----

        """
    /// In OpenSSH's own format.
    static let sshKey = """
        -----BEGIN OPENSSH PRIVATE KEY-----
        b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gtZW
        QyNTUxOQAAACC7+GLhH5nyLjer6hQ653CDY1yFWtkjZ6WkmFN9KpvffwAAAIiJnBehiZwX
        oQAAAAtzc2gtZWQyNTUxOQAAACC7+GLhH5nyLjer6hQ653CDY1yFWtkjZ6WkmFN9Kpvffw
        AAAEAJYW7TtNvwSYGDLJd4xjj81NVAuJSoJ2+2Yh5+rPQCt7v4YuEfmfIuN6vqFDrncINj
        XIVa2SNnpaSYU30qm99/AAAAAAECAwQF
        -----END OPENSSH PRIVATE KEY-----

        """
}
