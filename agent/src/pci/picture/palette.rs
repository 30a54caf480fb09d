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

const fn tone(
    class: &'static str,
    text: &'static str,
    fill: &'static str,
    stroke: &'static str,
) -> Tone {
    Tone {
        class,
        text,
        fill,
        stroke,
    }
}

pub(super) const LIGHT: Palette = Palette {
    page: "#ffffff",
    text: "#1b1f24",
    note: "#4b535d",
    wire: "#8c959f",
    frame: "#f6f8fa",
    frame_line: "#b4bdc7",
    stripe: "#ffdd7a",
    attention: "#7a4b00",
    tones: [
        tone("host", "#1b1f24", "#e4e8ec", "#6e7781"),
        tone("gpu", "#0a3069", "#d8eefd", "#0969da"),
        tone("nic", "#3b1f7a", "#ece2ff", "#8250df"),
        tone("aside", "#3d444d", "#eceff2", "#8c959f"),
        tone("good", "#0b4a1f", "#d7f5de", "#2a8a41"),
        tone("bad", "#ffffff", "#c4211f", "#7d0f0d"),
        tone("unknown", "#4d3300", "#fff3cf", "#a87400"),
    ],
    path_bad: tone("bad", "#86150f", "#ffdbd7", "#c4211f"),
};

pub(super) const DARK: Palette = Palette {
    page: "#0d1117",
    text: "#e6edf3",
    note: "#aab4bf",
    wire: "#69727d",
    frame: "#151b23",
    frame_line: "#4a525c",
    stripe: "#664a00",
    attention: "#f0b83f",
    tones: [
        tone("host", "#e6edf3", "#2a313a", "#7d8590"),
        tone("gpu", "#c2e0ff", "#0c2d4d", "#388bfd"),
        tone("nic", "#e0d0ff", "#2f1d57", "#a371f7"),
        tone("aside", "#c9d1d9", "#21262d", "#6e7681"),
        tone("good", "#aef2bd", "#11361e", "#3fb950"),
        tone("bad", "#ffffff", "#c12a25", "#ff8078"),
        tone("unknown", "#ffe3a0", "#362800", "#d29922"),
    ],
    path_bad: tone("bad", "#ffc4bd", "#4d1613", "#f85149"),
};

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
        for palette in [&LIGHT, &DARK] {
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
