//! Colours, light and dark, in which every text can be read.

/// Text on fill, with an outline.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tone {
    pub class: &'static str,
    pub text: &'static str,
    pub fill: &'static str,
    pub stroke: &'static str,
}

/// Colours that fit each other.
#[derive(Debug)]
pub(super) struct Palette {
    pub page: &'static str,
    pub text: &'static str,
    pub note: &'static str,
    pub wire: &'static str,
    pub frame: &'static str,
    pub frame_line: &'static str,
    pub stripe: &'static str,
    pub attention: &'static str,
    pub tones: [Tone; 7],
    pub path_bad: Tone,
}

/// What the browser is set to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scheme {
    Light,
    Dark,
}

impl Scheme {
    /// One of two colours, the light one first.
    const fn of(self, light: &'static str, dark: &'static str) -> &'static str {
        match self {
            Self::Light => light,
            Self::Dark => dark,
        }
    }

    /// A tone from its text, fill and stroke in both.
    const fn tone(
        self,
        class: &'static str,
        light: [&'static str; 3],
        dark: [&'static str; 3],
    ) -> Tone {
        let [text, fill, stroke] = match self {
            Self::Light => light,
            Self::Dark => dark,
        };
        Tone {
            class,
            text,
            fill,
            stroke,
        }
    }

    /// All its colours.
    pub(super) const fn palette(self) -> Palette {
        Palette {
            page: self.of("#ffffff", "#0d1117"),
            text: self.of("#1b1f24", "#e6edf3"),
            note: self.of("#4b535d", "#aab4bf"),
            wire: self.of("#8c959f", "#69727d"),
            frame: self.of("#f6f8fa", "#151b23"),
            frame_line: self.of("#b4bdc7", "#4a525c"),
            stripe: self.of("#ffdd7a", "#664a00"),
            attention: self.of("#7a4b00", "#f0b83f"),
            tones: [
                self.tone(
                    "host",
                    ["#1b1f24", "#e4e8ec", "#6e7781"],
                    ["#e6edf3", "#2a313a", "#7d8590"],
                ),
                self.tone(
                    "gpu",
                    ["#0a3069", "#d8eefd", "#0969da"],
                    ["#c2e0ff", "#0c2d4d", "#388bfd"],
                ),
                self.tone(
                    "nic",
                    ["#3b1f7a", "#ece2ff", "#8250df"],
                    ["#e0d0ff", "#2f1d57", "#a371f7"],
                ),
                self.tone(
                    "aside",
                    ["#3d444d", "#eceff2", "#8c959f"],
                    ["#c9d1d9", "#21262d", "#6e7681"],
                ),
                self.tone(
                    "good",
                    ["#0b4a1f", "#d7f5de", "#2a8a41"],
                    ["#aef2bd", "#11361e", "#3fb950"],
                ),
                self.tone(
                    "bad",
                    ["#ffffff", "#c4211f", "#7d0f0d"],
                    ["#ffffff", "#c12a25", "#ff8078"],
                ),
                self.tone(
                    "unknown",
                    ["#4d3300", "#fff3cf", "#a87400"],
                    ["#ffe3a0", "#362800", "#d29922"],
                ),
            ],
            path_bad: self.tone(
                "bad",
                ["#86150f", "#ffdbd7", "#c4211f"],
                ["#ffc4bd", "#4d1613", "#f85149"],
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Relative luminance of `#rrggbb` (WCAG 2).
    fn luminance(colour: &str) -> f64 {
        let channel = |at: usize| {
            let value = f64::from(u8::from_str_radix(&colour[at..at + 2], 16).unwrap()) / 255.0;
            match value <= 0.040_45 {
                true => value / 12.92,
                false => ((value + 0.055) / 1.055).powf(2.4),
            }
        };
        0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5)
    }

    fn contrast(a: &str, b: &str) -> f64 {
        let (a, b) = (luminance(a), luminance(b));
        (a.max(b) + 0.05) / (a.min(b) + 0.05)
    }

    /// 4.5 is what small text needs at level AA, 3 what a line that means something needs.
    #[test]
    fn everything_can_be_read() {
        for palette in [Scheme::Light, Scheme::Dark].map(Scheme::palette) {
            for Tone {
                class,
                text,
                fill,
                stroke,
            } in palette.tones.iter().chain([&palette.path_bad])
            {
                assert!(contrast(text, fill) >= 4.5, "{class} {text} on {fill}");
                assert!(
                    contrast(stroke, palette.frame) >= 3.0 || *class == "aside",
                    "{class} {stroke}"
                );
            }
            let unknown = palette
                .tones
                .iter()
                .find(|tone| tone.class == "unknown")
                .unwrap();
            assert!(contrast(unknown.text, palette.stripe) >= 4.5);
            for text in [palette.text, palette.note, palette.attention] {
                assert!(contrast(text, palette.page) >= 4.5, "{text}");
                assert!(contrast(text, palette.frame) >= 4.5, "{text}");
            }
        }
    }
}
