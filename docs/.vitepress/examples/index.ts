/** The programs of the playground's menu, by title. */
const files = import.meta.glob<string>("./*.js", { query: "?raw", import: "default", eager: true });

export const EXAMPLES: Readonly<Record<string, string>> = Object.fromEntries(
  Object.entries(files).map(([path, code]) => [titleOf(path), code]),
);

/** "Two spirals" of "./1-two-spirals.js". */
function titleOf(path: string): string {
  const words = path.replace(/^\.\/\d+-|\.js$/g, "").replaceAll("-", " ");
  return words === "xor" ? "XOR" : words.charAt(0).toUpperCase() + words.slice(1);
}
