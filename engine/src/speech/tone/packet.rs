//! Packets: the binary encoding of a text; see [`super`] for the layout.

/// Largest number of text bytes in a packet.
pub(super) const TEXT_BYTES_MAX: usize = 40;
/// Bytes before the text: the header with its checksum.
pub(super) const HEAD: usize = 4;
/// Bytes after the text: the checksum.
const CHECKSUM: usize = 4;
/// Largest size of a packet.
pub(super) const PACKET_BYTES_MAX: usize = HEAD + TEXT_BYTES_MAX + CHECKSUM;
/// Packets after the first have this many bits of the first one's text in their checksum.
const MARK_BITS: u32 = 12;
/// The packet number has ten bits.
const NUMBERS: u32 = 1 << 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    /// Identifies the utterance, in seven bits.
    pub(super) tag: u8,
    /// Whether this is the utterance's last packet.
    pub(super) is_last: bool,
    /// The packet's number in the utterance, from zero.
    pub(super) number: u16,
    /// Number of text bytes.
    pub(super) length: usize,
}

impl Header {
    /// Parses the first [`HEAD`] bytes of a packet; `None` when the checksum is wrong.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let [first, second, third, check] = *bytes.first_chunk::<HEAD>()?;
        let bits = u32::from_be_bytes([0, first, second, third]);
        let length = (bits & 63) as usize + 1;
        if check != header_checksum([first, second, third]) || length > TEXT_BYTES_MAX {
            return None;
        }
        Some(Self {
            tag: (bits >> 17) as u8,
            is_last: bits >> 16 & 1 == 1,
            number: (bits >> 6 & (NUMBERS - 1)) as u16,
            length,
        })
    }

    /// Size of the whole packet.
    pub(super) const fn packet_bytes(self) -> usize {
        HEAD + self.length + CHECKSUM
    }

    fn bytes(self) -> [u8; HEAD] {
        let bits = u32::from(self.tag) << 17
            | u32::from(self.is_last) << 16
            | u32::from(self.number) << 6
            | (self.length as u32 - 1);
        let [_, first, second, third] = bits.to_be_bytes();
        [first, second, third, header_checksum([first, second, third])]
    }
}

/// The packets of a text; none for an empty text. The limit on characters keeps the numbers within their bits.
pub(super) fn of_text(text: &str) -> Vec<Vec<u8>> {
    let tag = crc32fast::hash(text.as_bytes()) as u8 & 127;
    let pieces = pieces(text);
    debug_assert!(pieces.len() <= NUMBERS as usize);
    let mark = pieces.first().map_or(0, |first| mark(first));
    let header = |number: usize, piece: &str| Header {
        tag,
        is_last: number + 1 == pieces.len(),
        number: number as u16,
        length: piece.len(),
    };
    pieces.iter().enumerate().map(|(number, piece)| of_piece(header(number, piece), piece, mark)).collect()
}

/// The text of a packet, if its checksum is correct, and the mark of its utterance. Of two speakers at once, one pair in 128 has
/// the same tag; their marks tell them apart and take no time.
pub(super) fn text(packet: &[u8]) -> Option<(&str, u32)> {
    let (content, check) = packet.split_last_chunk::<CHECKSUM>()?;
    let header = Header::parse(content)?;
    let text = std::str::from_utf8(content.get(HEAD..)?).ok()?;
    let difference = crc32fast::hash(content) ^ u32::from_be_bytes(*check);
    if header.number == 0 {
        return (difference == 0).then(|| (text, mark(text)));
    }
    (difference < 1 << MARK_BITS).then_some((text, difference))
}

fn of_piece(header: Header, piece: &str, mark: u32) -> Vec<u8> {
    let mut bytes = header.bytes().to_vec();
    bytes.extend_from_slice(piece.as_bytes());
    let mark = if header.number == 0 { 0 } else { mark };
    bytes.extend_from_slice(&(crc32fast::hash(&bytes) ^ mark).to_be_bytes());
    bytes
}

/// The highest bits of the CRC-32 of the first packet's text.
fn mark(first: &str) -> u32 {
    crc32fast::hash(first.as_bytes()) >> (u32::BITS - MARK_BITS)
}

fn header_checksum(bytes: [u8; 3]) -> u8 {
    crc32fast::hash(&bytes) as u8
}

/// Divides the text between characters.
fn pieces(mut text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let (piece, rest) = text.split_at(text.floor_char_boundary(TEXT_BYTES_MAX));
        pieces.push(piece);
        text = rest;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_packet_is_laid_out_as_documented() {
        let [packet] = of_text("Hello").try_into().unwrap();
        // The CRC-32 of "Hello" is f7d18982: its tag is 2. Last, number 0, five bytes.
        assert_eq!(packet[..3], [0b0000_0101, 0, 4]);
        assert_eq!(packet[3], crc32fast::hash(&packet[..3]) as u8);
        assert_eq!(&packet[4..9], b"Hello");
        assert_eq!(packet[9..], crc32fast::hash(&packet[..9]).to_be_bytes());
    }

    #[test]
    fn the_next_packet_is_marked_with_the_first() {
        let first = "a".repeat(40);
        let [_, packet] = of_text(&format!("{first}b")).try_into().unwrap();
        let mark = crc32fast::hash(first.as_bytes()) >> 20;
        assert_eq!(packet[5..], (crc32fast::hash(&packet[..5]) ^ mark).to_be_bytes());
    }

    #[test]
    fn silence_is_not_a_header() {
        for byte in [0, u8::MAX] {
            assert_eq!(Header::parse(&[byte; HEAD]), None);
        }
    }

    proptest! {
        #[test]
        fn packets_contain_the_text(given in "\\PC{0,300}") {
            let packets = of_text(&given);
            let mut read = String::new();
            for (number, packet) in packets.iter().enumerate() {
                let header = Header::parse(packet).unwrap();
                prop_assert_eq!(usize::from(header.number), number);
                prop_assert_eq!(header.is_last, number + 1 == packets.len());
                prop_assert_eq!(header.packet_bytes(), packet.len());
                prop_assert!(packet.len() <= PACKET_BYTES_MAX);
                let (text, mark) = text(packet).unwrap();
                prop_assert_eq!(mark, super::mark(pieces(&given)[0]));
                read.push_str(text);
            }
            prop_assert_eq!(read, given);
        }

        #[test]
        fn detects_a_changed_byte(given in "[ -~]{1,40}", place: prop::sample::Index, other in 1_u8..) {
            let mut packet = of_text(&given).remove(0);
            let place = place.index(packet.len());
            packet[place] ^= other;
            prop_assert_eq!(text(&packet), None);
        }

        #[test]
        fn arbitrary_bytes_do_not_panic(bytes: Vec<u8>) {
            Header::parse(&bytes);
            prop_assert_eq!(text(&bytes), None);
        }
    }
}
