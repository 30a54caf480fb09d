//! Reserved words, and the tokens that end a list.

use super::lex::Tok;

/// True for a token that ends a list of commands.
pub(super) fn ends_list(tok: Tok) -> bool {
    matches!(
        tok,
        Tok::Eof
            | Tok::Close
            | Tok::EndCase
            | Tok::Do
            | Tok::Done
            | Tok::Elif
            | Tok::Else
            | Tok::Esac
            | Tok::Fi
            | Tok::Then
            | Tok::End
    )
}

/// True for tokens where dash and bash agree that they do not fit, wherever dash says so.
pub(super) fn never_fits(tok: Tok) -> bool {
    matches!(
        tok,
        Tok::Semicolon | Tok::Background | Tok::And | Tok::Or | Tok::Pipe
    ) || ends_list(tok)
}

/// The token that a bare word stands for where a command may begin.
pub(super) fn keyword(text: &[u8]) -> Option<Tok> {
    Some(match text {
        b"!" => Tok::Not,
        b"case" => Tok::Case,
        b"do" => Tok::Do,
        b"done" => Tok::Done,
        b"elif" => Tok::Elif,
        b"else" => Tok::Else,
        b"esac" => Tok::Esac,
        b"fi" => Tok::Fi,
        b"for" => Tok::For,
        b"if" => Tok::If,
        b"in" => Tok::In,
        b"then" => Tok::Then,
        b"until" => Tok::Until,
        b"while" => Tok::While,
        b"{" => Tok::Begin,
        b"}" => Tok::End,
        _ => return None,
    })
}
