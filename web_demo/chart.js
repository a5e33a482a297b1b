// A horizontal bar chart as inline SVG. Widths are percentages, so it fits any window without scaling its text.

const ROW = 50;
const BAR = { y: 22, height: 14, rx: 3 };

function svg(name, attributes = {}, text = "") {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.textContent = text;
  return element;
}

/** `bars` are {label, value, parts: [{size, className}]}: parts lie one after the other, sizes share one linear scale. */
export function barChart(title, bars) {
  const total = (bar) => bar.parts.reduce((sum, part) => sum + part.size, 0);
  const scale = 100 / Math.max(...bars.map(total));
  const summary = bars.map((bar) => `${bar.label}: ${bar.value}`).join("; ");
  const chart = svg("svg", { height: bars.length * ROW, role: "img", "aria-label": `${title}. ${summary}` });
  for (const [i, bar] of bars.entries()) {
    const row = svg("g", { transform: `translate(0 ${i * ROW})` });
    row.append(svg("text", { y: 15 }, bar.label));
    row.append(svg("text", { x: "100%", y: 15, "text-anchor": "end", class: "value" }, bar.value));
    row.append(svg("rect", { ...BAR, width: "100%", class: "track" }));
    let x = 0;
    for (const { size, className } of bar.parts) {
      row.append(svg("rect", { ...BAR, x: `${x}%`, width: `${size * scale}%`, class: className }));
      x += size * scale;
    }
    chart.append(row);
  }
  return chart;
}
