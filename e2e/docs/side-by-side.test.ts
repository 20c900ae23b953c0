/** The programs of the page are those that e2e/programs trains beside PyTorch. OPT_WRITE_DOCS=1 copies them anew. */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const page = new URL("../../docs/guides/side-by-side.md", import.meta.url);
const ports = fileURLToPath(new URL("../programs/ports/", import.meta.url));

it("programs side by side are the ones that are trained", () => {
  const text = readFileSync(page, "utf8");
  const files: string[] = [];
  const copied = text.replace(/^```(ts|python) (\S+)\n[\s\S]*?^```$/gm, (_, language, file) => {
    const path = readdirSync(ports, { recursive: true, encoding: "utf8" }).find((each) => each.endsWith(`/${file}`));
    files.push(file);
    return `\`\`\`${language} ${file}\n${readFileSync(ports + path!, "utf8")}\`\`\``;
  });
  if (process.env.OPT_WRITE_DOCS === "1") writeFileSync(page, copied);
  expect(files).toHaveLength(12);
  expect(text).toBe(copied);
});
