//! The signature at the end of a module (Linux include/linux/module_signature.h, PKCS #7 of RFC 5652).

use der::{AnyRef, Decode, Reader, SliceReader, Tag, Tagged, asn1::ObjectIdentifier};
use schemars::JsonSchema;
use serde::Serialize;

const MAGIC: &[u8] = b"~Module signature appended~\n";

/// `struct module_signature`: algo, hash, id type, two lengths, three bytes of padding, length of the data.
const TRAILER: usize = 12;

/// Who signed a module. Whether the kernel trusts that key is not in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Signature {
    /// Common name of the certificate's issuer; none if the signature says it in no way known here.
    pub signer: Option<String>,
    /// Serial number of the certificate, hexadecimal.
    pub serial: Option<String>,
    /// The digest, such as `sha256`, or its object identifier.
    pub hash: Option<String>,
}

/// The signature of a module's bytes; none without the kernel's mark at the end.
#[must_use]
pub fn signature(bytes: &[u8]) -> Option<Signature> {
    let rest = bytes.strip_suffix(MAGIC)?;
    let nothing = Signature {
        signer: None,
        serial: None,
        hash: None,
    };
    let told = || {
        let (rest, trailer) = rest.split_at_checked(rest.len().checked_sub(TRAILER)?)?;
        let [.., a, b, c, d] = trailer else {
            return None;
        };
        let length = usize::try_from(u32::from_be_bytes([*a, *b, *c, *d])).ok()?;
        let (_, message) = rest.split_at_checked(rest.len().checked_sub(length)?)?;
        read(message).ok()
    };
    Some(told().unwrap_or(nothing))
}

/// `ContentInfo { OID, [0] SignedData { version, digests, content, [0] certificates?, [1] crls?,
/// SET OF SignerInfo { version, IssuerAndSerialNumber, digest, ... } } }`
fn read(message: &[u8]) -> der::Result<Signature> {
    let content = AnyRef::from_der(message)?;
    let mut info = SliceReader::new(content.value())?;
    AnyRef::decode(&mut info)?;
    let explicit = AnyRef::decode(&mut info)?;
    let signed = AnyRef::from_der(explicit.value())?;
    let mut fields = SliceReader::new(signed.value())?;
    let mut last = AnyRef::decode(&mut fields)?;
    while !fields.is_finished() {
        last = AnyRef::decode(&mut fields)?;
    }
    let signer = AnyRef::decode(&mut SliceReader::new(last.value())?)?;
    let mut fields = SliceReader::new(signer.value())?;
    AnyRef::decode(&mut fields)?;
    let id = AnyRef::decode(&mut fields)?;
    let digest = AnyRef::decode(&mut fields)?;
    let algorithm = AnyRef::decode(&mut SliceReader::new(digest.value())?)?;
    // Instead of an issuer there may be a key identifier, under a context tag.
    let (signer, serial) = match id.tag() {
        Tag::Sequence => {
            let mut id = SliceReader::new(id.value())?;
            let issuer = AnyRef::decode(&mut id)?;
            let serial = AnyRef::decode(&mut id)?;
            (common_name(issuer.value())?, Some(hex(serial.value())))
        }
        _ => (None, Some(hex(id.value()))),
    };
    Ok(Signature {
        signer,
        serial,
        hash: Some(hash_name(algorithm.decode_as::<ObjectIdentifier>()?)),
    })
}

/// `SEQUENCE OF SET OF { OID, value }`, without its outer tag.
fn common_name(names: &[u8]) -> der::Result<Option<String>> {
    const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
    let mut sets = SliceReader::new(names)?;
    while !sets.is_finished() {
        let set = AnyRef::decode(&mut sets)?;
        let mut pairs = SliceReader::new(set.value())?;
        while !pairs.is_finished() {
            let pair = AnyRef::decode(&mut pairs)?;
            let mut pair = SliceReader::new(pair.value())?;
            let name = AnyRef::decode(&mut pair)?.decode_as::<ObjectIdentifier>()?;
            let value = AnyRef::decode(&mut pair)?;
            if name == COMMON_NAME {
                return Ok(Some(String::from_utf8_lossy(value.value()).into_owned()));
            }
        }
    }
    Ok(None)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn hash_name(oid: ObjectIdentifier) -> String {
    let name = match oid.to_string().as_str() {
        "1.3.14.3.2.26" => "sha1",
        "2.16.840.1.101.3.4.2.1" => "sha256",
        "2.16.840.1.101.3.4.2.2" => "sha384",
        "2.16.840.1.101.3.4.2.3" => "sha512",
        "2.16.840.1.101.3.4.2.8" => "sha3-256",
        "2.16.840.1.101.3.4.2.9" => "sha3-384",
        "2.16.840.1.101.3.4.2.10" => "sha3-512",
        other => return other.to_owned(),
    };
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mark_is_no_signature() {
        assert_eq!(signature(b"\x7fELF"), None);
        assert_eq!(signature(b""), None);
    }

    #[test]
    fn a_mark_over_nonsense_is_a_signature_of_nobody() {
        for body in [&b""[..], b"short", &[0xff; 64]] {
            let mut bytes = body.to_vec();
            bytes.extend(MAGIC);
            let found = signature(&bytes).unwrap();
            assert_eq!((found.signer, found.hash), (None, None));
        }
    }
}
