/** Draws how a checkpoint of four ranks is cut for three: `ranks.svg`. Each colour is a slice of the weights. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";

const [WIDTH, HEIGHT] = [480, 300];
const [LEFT, LENGTH, BAR] = [40, 400, 56];
const HUES = [215, 30, 150, 285];

/** A row of `ranks` boxes; each shows the slices that it holds, by the colour of who saved them. */
function row(y: number, ranks: number): string {
  const saved = HUES.map((hue, i) => {
    const x = LEFT + (LENGTH * i) / HUES.length;
    return `<rect x="${x}" y="${y}" width="${LENGTH / HUES.length}" height="${BAR}" fill="hsl(${hue} 60% 52%)"/>`;
  });
  const boxes = Array.from({ length: ranks }, (_, i) => {
    const [x, width] = [LEFT + (LENGTH * i) / ranks, LENGTH / ranks];
    const name = `<text x="${x + width / 2}" y="${y + BAR + 24}" text-anchor="middle">rank ${i}</text>`;
    return `<rect x="${x}" y="${y}" width="${width}" height="${BAR}" fill="none" stroke="#fff" stroke-width="6"/>${name}`;
  });
  return [...saved, ...boxes].join("\n");
}

export function drawRanks(folder: string): void {
  const rows = [row(44, 4), row(188, 3)].join("\n");
  const background = `<rect width="${WIDTH}" height="${HEIGHT}" fill="#fff"/>`;
  const head = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="16" fill="#1f2328">`;
  writeFileSync(
    join(folder, "ranks.svg"),
    `${head}\n<title>Four ranks, then three</title>\n${background}\n${rows}\n</svg>\n`,
  );
}
