//! What a drawing shows, read back from its SVG.

use roxmltree::{Document, Node};

/// One thing that is drawn: a device, a port, a path.
#[derive(Debug)]
pub struct Drawn {
    pub about: String,
    pub class: String,
    /// All its text, lines joined by a space.
    pub text: String,
}

impl Drawn {
    pub fn is(&self, class: &str) -> bool {
        self.class.split(' ').any(|one| one == class)
    }
}

/// Left, top, right, bottom, and what it is.
type Area = (f64, f64, f64, f64, String);

pub struct Picture {
    pub drawn: Vec<Drawn>,
    pub description: String,
    pub size: (f64, f64),
    texts: Vec<Area>,
    boxes: Vec<Area>,
    /// Each text with the box around it.
    inside: Vec<(Area, Area)>,
}

fn number(node: &Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap().parse().unwrap()
}

fn rect(node: &Node<'_, '_>) -> Area {
    let (x, y) = (number(node, "x"), number(node, "y"));
    let (w, h) = (number(node, "width"), number(node, "height"));
    (x, y, x + w, y + h, format!("{:?}", node.range()))
}

/// Where a line of text stands: the length that holds it, or 0.55 em a character, more than a
/// proportional font takes on average; from the ascenders to the descenders.
fn line(node: &Node<'_, '_>) -> Area {
    let text = node.text().unwrap_or_default();
    let class = node.attribute("class").unwrap();
    let size = class
        .split(' ')
        .find_map(|c| c.strip_prefix('s')?.parse().ok());
    let size: f64 = size.unwrap();
    let (x, y) = (number(node, "x"), number(node, "y"));
    let length = match node.attribute("textLength") {
        Some(length) => length.parse().unwrap(),
        None => text.chars().count() as f64 * size * 0.55,
    };
    (
        x,
        y - 0.78 * size,
        x + length,
        y + 0.22 * size,
        text.to_owned(),
    )
}

impl Picture {
    pub fn of(document: &Document<'_>) -> Self {
        let root = document.root_element();
        assert_eq!(root.tag_name().name(), "svg");
        let texts_of = |node: Node<'_, '_>| -> Vec<String> {
            let texts = node
                .descendants()
                .filter(|n| n.has_tag_name(("http://www.w3.org/2000/svg", "text")));
            texts
                .map(|n| n.text().unwrap_or_default().to_owned())
                .collect()
        };
        let named = |name: &'static str| {
            root.descendants()
                .filter(move |n| n.tag_name().name() == name)
        };
        let mut picture = Self {
            drawn: Vec::new(),
            description: named("desc").next().unwrap().text().unwrap().to_owned(),
            size: (number(&root, "width"), number(&root, "height")),
            texts: named("text")
                .filter(|n| n.text().is_some())
                .map(|n| line(&n))
                .collect(),
            boxes: Vec::new(),
            inside: Vec::new(),
        };
        for group in named("g") {
            picture.drawn.push(Drawn {
                about: group.attribute("data-about").unwrap().to_owned(),
                class: group.attribute("class").unwrap().to_owned(),
                text: texts_of(group).join(" "),
            });
            let title = group.children().find(|n| n.tag_name().name() == "title");
            assert!(!title.unwrap().text().unwrap().is_empty());
            let own = group.children().find(|n| n.attribute("class") == Some("b"));
            if let Some(own) = own {
                let texts = group
                    .children()
                    .filter(|n| n.tag_name().name() == "text" && n.text().is_some());
                picture
                    .inside
                    .extend(texts.map(|text| (line(&text), rect(&own))));
                picture.boxes.push(rect(&own));
            }
        }
        picture
    }

    /// The one thing that is about this.
    pub fn only(&self, about: &str) -> &Drawn {
        let found: Vec<&Drawn> = self.drawn.iter().filter(|d| d.about == about).collect();
        assert_eq!(found.len(), 1, "{about}: {found:?}");
        found[0]
    }

    /// No text over text, no box over box, no text across a box's edge, nothing outside.
    pub fn assert_legible(&self) {
        let apart = |a: &Area, b: &Area| {
            let beside = a.2 <= b.0 || b.2 <= a.0;
            assert!(beside || a.3 <= b.1 || b.3 <= a.1, "{a:?} over {b:?}");
        };
        let pairs = |areas: &[Area]| {
            for (at, one) in areas.iter().enumerate() {
                areas[at + 1..].iter().for_each(|other| apart(one, other));
            }
        };
        pairs(&self.texts);
        pairs(&self.boxes);
        for (text, around) in &self.inside {
            let fits =
                around.0 < text.0 && text.2 < around.2 && around.1 <= text.1 && text.3 <= around.3;
            assert!(fits, "{text:?} in {around:?}");
        }
        for text in self
            .texts
            .iter()
            .filter(|text| !self.inside.iter().any(|(t, _)| t == *text))
        {
            self.boxes.iter().for_each(|area| apart(text, area));
        }
        for area in self.texts.iter().chain(&self.boxes) {
            let fits =
                area.0 >= 0.0 && area.1 >= 0.0 && area.2 <= self.size.0 && area.3 <= self.size.1;
            assert!(fits, "{area:?} outside {:?}", self.size);
        }
    }
}
