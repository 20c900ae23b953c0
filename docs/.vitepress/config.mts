/** The site: pages as they are, the API from TypeDoc, search in the page. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { defineConfig, type MarkdownRenderer } from "vitepress";
import { encode } from "./theme/address";

const docs = new URL("../", import.meta.url);
const titleOf = (page: string) => /^# (.*)/m.exec(readFileSync(new URL(`${page}.md`, docs), "utf8"))?.[1] ?? page;
const link = (page: string) => ({ text: titleOf(page).replaceAll("`", ""), link: `/${page}` });
/** The pages of a folder: those named first, then the others. */
function pagesOf(folder: string, first = ""): { text: string; link: string }[] {
  const names = readdirSync(new URL(folder, docs))
    .sort()
    .filter((file) => file.endsWith(".md") && file !== "index.md");
  const all = new Set([...first.split(" "), ...names.map((file) => file.slice(0, -3))].filter((name) => name !== ""));
  return [...all].map((name) => link(`${folder}/${name}`));
}

const HOW_TO =
  "freeze-a-layer clip-gradients plot-the-loss model-summary early-stopping save-the-best-model predict mixed-precision draw-from-a-distribution use-webgpu vite-and-next train-in-a-worker compile-a-step load-a-pt-file use-a-hugging-face-model reshard-a-pytorch-run resume-on-three-machines write-your-own-layer find-a-nan choose-a-test";
const TUTORIALS = "first-model save-and-resume from-pytorch several-processes your-own-optimizer your-own-device";
const decisions = pagesOf("decisions");
const guides = [
  { text: "Tutorials", items: pagesOf("tutorials", TUTORIALS) },
  {
    text: "Guides",
    items: pagesOf(
      "guides",
      "fine-tune-a-language-model devices memory compile precision checkpoints stores runtimes migration",
    ),
  },
];

/** A block marked `run` gets a button. */
function runnable({ renderer }: MarkdownRenderer) {
  const { fence } = renderer.rules;
  renderer.rules.fence = (tokens, index, ...rest) => {
    const html = fence!(tokens, index, ...rest);
    const { info, content } = tokens[index]!;
    return /^js run\b/.test(info) ? `<Sample code="${encode(content)}">${html}</Sample>` : html;
  };
}

export default defineConfig({
  title: "Opt",
  description: "Train neural networks in TypeScript, in Node and the browser, with PyTorch's numbers.",
  lang: "en",
  cleanUrls: true,
  metaChunk: true,
  router: { prefetchLinks: false },
  head: [
    ["meta", { name: "theme-color", content: "#2a6fdb" }],
    ["link", { rel: "icon", href: "data:," }],
  ],
  markdown: {
    config: runnable,
    image: { lazyLoading: true },
    theme: { light: "github-light-high-contrast", dark: "github-dark-high-contrast" },
  },
  vite: {
    build: { chunkSizeWarningLimit: 2000 },
    // What renders the pages here is not sent to readers.
    plugins: [
      {
        name: "opt:shake-for-readers",
        config: (_, { isSsrBuild }) => ({ build: { rollupOptions: { treeshake: !isSsrBuild } } }),
      },
    ],
    resolve: {
      alias: [{ find: /^.*\/VPHome\.vue$/, replacement: fileURLToPath(new URL("theme/Home.vue", import.meta.url)) }],
    },
  },
  themeConfig: {
    nav: [
      { text: "Learn", link: "/learn/01-tensors", activeMatch: "/learn/" },
      { text: "How-to", link: "/how-to/freeze-a-layer", activeMatch: "/how-to/" },
      { text: "Guides", link: "/guides/devices", activeMatch: "/(guides|tutorials)/" },
      { text: "API", link: "/api/", activeMatch: "/api/" },
      { text: "Demos", link: "/demos/", activeMatch: "/demos/" },
      { text: "Playground", link: "/playground" },
      { text: "Leaderboard", link: "/leaderboard" },
      { text: "Benchmarks", link: "/benchmarks" },
    ],
    sidebar: {
      "/learn/": [{ text: "Learn in 12 steps", items: pagesOf("learn") }],
      "/how-to/": [{ text: "How to", items: pagesOf("how-to", HOW_TO) }],
      "/guides/": guides,
      "/tutorials/": guides,
      "/decisions/": [{ text: "Decisions", items: decisions }],
      "/benchmarks": guides,
      "/api/": apiSidebar(),
    },
    outline: { level: [2, 3] },
    search: {
      provider: "local",
      options: {
        // Parameters and results of a function are text, no places of their own.
        _render: (source, env, md) => {
          const { highlight } = md.options;
          md.options.highlight = null; // colours are no words
          const html = md.render(source, env);
          md.options.highlight = highlight;
          return env.relativePath.startsWith("api/") ? html.replace(/<h[4-6][\s\S]*?<\/h[4-6]>/g, "") : html;
        },
        miniSearch: {
          options: {
            // Words that say nothing find nothing.
            processTerm: (term: string) =>
              /^(a|an|and|at|by|for|in|is|it|of|on|or|the|to|with|your)$/i.test(term) ? null : term.toLowerCase(),
          },
          searchOptions: {
            prefix: (term: string) => term.length > 2,
            boost: { title: 12, titles: 2, text: 1 },
            // Pages before symbols, and what to do before what to know.
            boostDocument: (id: string) => (/\/api\//.test(id) ? 0.2 : /\/how-to\//.test(id) ? 2 : 1),
          },
        },
      },
    },
    docFooter: { prev: "Before", next: "Next" },
  },
});

/** Packages, and under core and nn their topics. */
function apiSidebar() {
  const pages = readdirSync(new URL("api", docs), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md") && file !== "index.md")
    .map((file) => link(`api/${file.slice(0, -3)}`));
  const group = (text: string, test: RegExp) => ({
    text,
    items: pages.filter((page) => test.test(page.link)).sort((a, b) => (a.link < b.link ? -1 : 1)),
  });
  const groups = [
    group("Tensors: @opt/core", /^\/api\/core(-|$|\/schedules|\/distributions)/),
    group("Models: @opt/nn", /^\/api\/nn/),
    group("Training and data", /^\/api\/(train|data|checkpoint|parallel)/),
    group("Devices", /^\/api\/(kernels|collectives|core\/backend)/),
    group("Other libraries", /^\/api\/(tfjs|jax-js)/),
  ];
  const taken = new Set(groups.flatMap(({ items }) => items.map((item) => item.link)));
  const optimizers = pages.filter((page) => !taken.has(page.link)).sort((a, b) => (a.link < b.link ? -1 : 1));
  groups.splice(3, 0, { text: "Optimizers", items: optimizers });
  return [{ text: "Packages", link: "/api/" }, ...groups];
}
