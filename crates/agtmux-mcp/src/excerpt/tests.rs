use proptest::prelude::*;

use super::*;

fn collected(text: &str, offset: Option<u64>) -> OutputCollector {
    let mut collector = OutputCollector::new(offset);
    collector.push(text.as_bytes());
    collector
}

/// Reads an output like a client that follows `next_offset` to the end.
fn read_all(text: &str, max_chars: usize) -> String {
    let (mut offset, mut all) = (0, String::new());
    loop {
        let excerpt = collected(text, Some(offset)).excerpt(max_chars);
        all.push_str(&excerpt.parts[0].text);
        match excerpt.next_offset {
            Some(next) => {
                assert!(next > offset, "no progress at {offset}");
                offset = next;
            }
            None => return all,
        }
    }
}

#[test]
fn a_short_output_is_shown_whole() {
    let excerpt = collected("one\ntwo\n", None).excerpt(100);
    assert_eq!((excerpt.omitted_bytes, excerpt.next_offset), (0, None));
    assert_eq!(excerpt.parts[0].text, "one\ntwo\n");
    assert_eq!(excerpt.explained("call again with").more, None);
}

#[test]
fn a_long_output_shows_its_beginning_and_its_end() {
    let text: String = (0..10_000).map(|n| format!("line {n}\n")).collect();
    let excerpt = collected(&text, None).excerpt(DEFAULT_CHARS);
    let [head, tail] = &excerpt.parts[..] else { panic!("{excerpt:?}") };
    assert!(head.text.starts_with("line 0\n") && tail.text.ends_with("line 9999\n"));
    let shown: usize = excerpt.parts.iter().map(|part| cost(&part.text)).sum();
    assert!((DEFAULT_CHARS - 40..=DEFAULT_CHARS).contains(&shown), "{shown}");
    let next = excerpt.next_offset.expect("something is missing");
    let follows = collected(&text, Some(next)).excerpt(100);
    let (at, length) = (usize::try_from(next).expect("small"), follows.parts[0].text.len());
    assert_eq!(follows.parts[0].text, text[at..at + length]);
    assert_eq!(head.text, text[..at]);
    assert_eq!(tail.text, text[usize::try_from(tail.offset).expect("small")..]);
    assert_eq!(excerpt.omitted_bytes, tail.offset - next);
}

#[test]
fn fifty_megabytes_are_bounded() {
    let mut collector = OutputCollector::new(None);
    let part = "x".repeat(1 << 20);
    for _ in 0..50 {
        collector.push(part.as_bytes());
    }
    assert!(collector.first.len() + collector.last.len() <= 1 << 20);
    let excerpt = collector.excerpt(DEFAULT_CHARS);
    assert_eq!(excerpt.total_bytes, 50 << 20);
    assert!(excerpt.parts.iter().map(|part| part.text.len()).sum::<usize>() <= DEFAULT_CHARS);
    let next = excerpt.next_offset.expect("more");
    assert_eq!(next, (DEFAULT_CHARS / HEAD_SHARE) as u64);
}

#[test]
fn a_secret_at_the_edge_of_a_part_is_redacted() {
    let secret = "ghp_0123456789abcdefghijABCDEFGHIJ012345";
    for before in (0..3000).step_by(97) {
        let text = format!("{}{secret} {}", "y ".repeat(before), "z ".repeat(20_000));
        for excerpt in [collected(&text, None), collected(&text, Some(2 * before as u64 + 5))] {
            let shown = excerpt.excerpt(2000);
            assert!(shown.parts.iter().all(|part| !part.text.contains("0123456789")), "{before}");
        }
    }
}

#[test]
fn an_offset_behind_the_end_shows_nothing() {
    let excerpt = collected("abc\n", Some(900)).excerpt(100);
    assert_eq!((excerpt.parts[0].text.as_str(), excerpt.next_offset), ("", None));
}

proptest! {
    #[test]
    fn reading_on_gives_every_line_once(lines in proptest::collection::vec("[a-z é]{0,60}", 0..60), most in 5usize..200) {
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        prop_assert_eq!(read_all(&text, most), text);
    }

    #[test]
    fn any_bytes_give_a_bounded_excerpt(bytes in proptest::collection::vec(any::<u8>(), 0..4000), offset in 0u64..5000) {
        for offset in [None, Some(offset)] {
            let mut collector = OutputCollector::new(offset);
            bytes.chunks(97).for_each(|chunk| collector.push(chunk));
            let excerpt = collector.excerpt(300);
            prop_assert!(excerpt.parts.iter().map(|part| cost(&part.text)).sum::<usize>() <= 300);
            let hidden = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
            prop_assert!(excerpt.parts.iter().all(|part| !part.text.contains(hidden)));
        }
    }
}
