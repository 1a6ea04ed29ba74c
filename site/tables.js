// Gives each cell of a wide table the heading of its column: on a telephone, where each line is a card, the style shows it.
"use strict";
for (const table of document.querySelectorAll("main table")) {
  const headings = [...table.querySelectorAll("thead th")].map((heading) => heading.textContent);
  if (headings.length < 4) continue;
  table.classList.add("wide");
  for (const row of table.querySelectorAll("tbody tr")) {
    [...row.cells].forEach((cell, number) => { cell.dataset.heading = headings[number] ?? ""; });
  }
}
