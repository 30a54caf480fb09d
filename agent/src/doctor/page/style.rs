//! The style sheet of the page. Every text has a contrast of at least 4.5 to what it stands on, light and dark.

pub(super) const SHEET: &str = "\
:root{color-scheme:light dark;--page:#fff;--text:#1b1f24;--quiet:#57606a;--line:#d0d7de;--box:#f6f8fa;
--good:#116329;--good-fill:#dafbe1;--bad:#a40e26;--bad-fill:#ffebe9;--warn:#6b4900;--warn-fill:#fff3c4;--unknown:#5b3f8f;--unknown-fill:#f1eafc}
@media screen and (prefers-color-scheme:dark){:root{--page:#0d1117;--text:#e6edf3;--quiet:#9da7b3;--line:#3d444d;--box:#161b22;
--good:#7ee2a0;--good-fill:#12301c;--bad:#ffb1a8;--bad-fill:#4a1518;--warn:#f2cc60;--warn-fill:#3a2d07;--unknown:#d2b8ff;--unknown-fill:#2d2145}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:15px/1.5 system-ui,\"DejaVu Sans\",\"Liberation Sans\",Helvetica,Arial,sans-serif}
main{max-width:1200px;margin:0 auto;padding:16px 16px 40px}
h1{font-size:24px;line-height:1.25;margin:0}
h2{font-size:19px;margin:34px 0 10px;padding-bottom:4px;border-bottom:1px solid var(--line)}
h3{font-size:15px;margin:0 0 4px}h2+h3{margin-top:0}
p{margin:0 0 8px}
.node,.about,small,footer{color:var(--quiet)}
code{font-family:ui-monospace,\"DejaVu Sans Mono\",\"Liberation Mono\",Menlo,Consolas,monospace;font-size:.9em;overflow-wrap:anywhere}
.verdict{font-size:18px;font-weight:600;padding:12px 16px;border-radius:6px;border-left:6px solid;margin:12px 0 0}
.good{color:var(--good);background:var(--good-fill)}.bad{color:var(--bad);background:var(--bad-fill)}
.warn{color:var(--warn);background:var(--warn-fill)}.unknown{color:var(--unknown);background:var(--unknown-fill)}
.note{color:var(--quiet);background:var(--box)}
.causes{margin:0;padding:0;list-style:none;counter-reset:n}
.cause,.aside{color:var(--text);background:var(--box);border:1px solid var(--line);border-left:6px solid var(--line);border-radius:6px;padding:12px 16px;margin:0 0 12px;overflow-wrap:anywhere}
.cause h3{display:flex;flex-wrap:wrap;gap:8px;align-items:baseline;font-size:16px}
.cause h3::before{counter-increment:n;content:counter(n) \".\"}
.cause.bad{border-left-color:var(--bad)}.cause.warn{border-left-color:var(--warn)}.cause.unknown,.aside{border-left-color:var(--unknown)}
.tag{font-size:12px;font-weight:600;padding:1px 8px;border-radius:9px}
.bad .tag{color:var(--bad);background:var(--bad-fill)}.warn .tag{color:var(--warn);background:var(--warn-fill)}
.unknown .tag{color:var(--unknown);background:var(--unknown-fill)}.note .tag{color:var(--quiet);background:var(--page)}
.do{padding:6px 10px;background:var(--page);border:1px solid var(--line);border-radius:4px}
.about{font-size:13px;overflow-wrap:anywhere}
details{margin:0 0 8px}
summary{cursor:pointer;padding:4px 0;font-weight:600}
summary small{font-weight:400}
.cause details{margin:0}.cause summary{font-size:13px}
.lines{margin:4px 0 8px;padding:0 0 0 18px;font-size:13px}
.lines li{overflow-wrap:anywhere}
figure,.wide{margin:0 0 8px;overflow-x:auto}
figure svg{display:block;max-width:100%;height:auto}
table{border-collapse:collapse;font-size:13px}
caption{text-align:left;padding:0 0 6px;color:var(--quiet);caption-side:top}
th,td{border:1px solid var(--line);padding:4px 8px;text-align:left;vertical-align:top;font-weight:400}
th{background:var(--box);font-weight:600}
.checks td:nth-child(2){min-width:15em}.checks td:nth-child(3){min-width:8em}
.checks td:last-child{min-width:20em;overflow-wrap:anywhere}
.heat{font-size:12px}.heat td,.heat th{padding:2px 6px;white-space:nowrap}.heat td{text-align:right;font-variant-numeric:tabular-nums}
.heat caption{white-space:normal}
.heat tbody th{position:sticky;left:0}
footer{margin-top:32px;font-size:13px}
@media screen{figure svg{min-width:820px}}
@media (max-width:600px){main{padding:12px 12px 32px}.verdict{font-size:16px}.cause,.aside{padding:10px 12px}}
@page{margin:12mm}
@media print{body{font-size:11px}main{max-width:none;padding:0}h2{break-after:avoid}.cause,.aside,tr,figure{break-inside:avoid}
figure,.wide{overflow:visible}figure svg{max-height:180mm}table{font-size:9px}.heat{font-size:7.5px}.heat td,.heat th{padding:1px 3px}
.heat tbody th{position:static}.checks td{min-width:0!important}
details::details-content{content-visibility:visible;block-size:auto;display:block}summary{list-style:none}
*{print-color-adjust:exact;-webkit-print-color-adjust:exact}}
";
