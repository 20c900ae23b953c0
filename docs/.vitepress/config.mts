/** The site: pages as they are, the API from TypeDoc, search in the page. */
import { readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { fileURLToPath } from "node:url";
import { defineConfig, type MarkdownRenderer } from "vitepress";
import { groupsOf, type Item, titleOf } from "./landing";
import { INDEX, isUnsearched, RANKING } from "./search";
import { encode } from "./theme/address";

const docs = new URL("../", import.meta.url);
const { version } = createRequire(import.meta.url)("@opt/core/package.json") as { version: string };

/** The sidebar of a folder: its landing page and the groups of pages there. */
const sidebarOf = (folder: string, text: string) => [{ text, link: `/${folder}/` }, ...groupsOf(folder)];
const guides = sidebarOf("guides", "All guides");

/** A block marked `run` gets a button. A program of PyTorch and the same one in TypeScript become a pair. An indented block is one, too. */
function blocks({ renderer }: MarkdownRenderer) {
  const { fence } = renderer.rules;
  renderer.rules.fence = (tokens, index, ...rest) => {
    const html = fence!(tokens, index, ...rest);
    const { info, content } = tokens[index]!;
    if (/^js run\b/.test(info)) return `<Sample code="${encode(content)}">${html}</Sample>`;
    const isPair = (at: number) => {
      const [, name] = /^python (.*)\.py$/.exec(tokens[at]?.info ?? "") ?? [];
      return name !== undefined && tokens[at + 1]?.info === `ts ${name}.ts`;
    };
    return `${isPair(index) ? '<div class="pair">' : ""}${html}${isPair(index - 1) ? "</div>" : ""}`;
  };
  renderer.rules.code_block = (...all) => renderer.rules.fence!(...all);
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
    ["link", { rel: "icon", type: "image/svg+xml", href: "/favicon.svg" }],
    ["meta", { property: "og:title", content: "Opt: train neural networks in TypeScript" }],
    ["meta", { property: "og:type", content: "website" }],
    ["meta", { property: "og:image", content: "/social.png" }],
    ["meta", { name: "twitter:card", content: "summary_large_image" }],
  ],
  markdown: {
    config: blocks,
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
      conditions: ["@opt/source"], // the charts of @opt/train
      alias: [{ find: /^.*\/VPHome\.vue$/, replacement: fileURLToPath(new URL("theme/Home.vue", import.meta.url)) }],
    },
  },
  themeConfig: {
    logo: { light: "/logo.svg", dark: "/logo-dark.svg" },
    nav: [
      { text: "Learn", link: "/learn/", activeMatch: "/learn/" },
      { text: "How-to", link: "/how-to/", activeMatch: "/how-to/" },
      { text: "Guides", link: "/guides/", activeMatch: "/(guides|tutorials)/" },
      { text: "API", link: "/api/", activeMatch: "/api/" },
      { text: "Demos", link: "/demos/", activeMatch: "/demos/" },
      { text: "Playground", link: "/playground" },
      {
        text: "What it can do",
        activeMatch: "/(leaderboard|benchmarks)",
        items: [
          { text: "Names of PyTorch", link: "/guides/features" },
          { text: "What combines", link: "/guides/what-combines" },
          { text: "What each device computes", link: "/guides/coverage" },
          { text: "Models", link: "/api/models" },
          { text: "Leaderboard of optimizers", link: "/leaderboard" },
          { text: "Benchmarks", link: "/benchmarks" },
        ],
      },
      { text: `v${version}`, link: "/how-to/install" },
    ],
    sidebar: {
      "/learn/": sidebarOf("learn", "Learn in 12 steps"),
      "/how-to/": sidebarOf("how-to", "All tasks"),
      "/guides/": guides,
      "/tutorials/": guides,
      "/decisions/": [{ text: "Decisions", items: pagesOf("decisions") }],
      "/benchmarks": guides,
      "/leaderboard": guides,
      "/api/": apiSidebar(),
    },
    outline: { level: [2, 3] },
    search: {
      provider: "local",
      options: {
        // Parameters and results of a function are text, no places of their own.
        _render: (source, env, md) => {
          if (isUnsearched(env.relativePath)) return "";
          const { highlight } = md.options;
          md.options.highlight = null; // colours are no words
          const html = md.render(source, env);
          md.options.highlight = highlight;
          return env.relativePath.startsWith("api/") ? html.replace(/<h[4-6][\s\S]*?<\/h[4-6]>/g, "") : html;
        },
        miniSearch: { options: INDEX, searchOptions: RANKING },
      },
    },
    docFooter: { prev: "Before", next: "Next" },
  },
});

/** Every page of a folder. */
function pagesOf(folder: string): Item[] {
  return readdirSync(new URL(folder, docs), { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md") && file !== "index.md")
    .sort()
    .map((file) => ({ text: titleOf(`${folder}/${file.slice(0, -3)}`), link: `/${folder}/${file.slice(0, -3)}` }));
}

/** Packages, and under core and nn their topics. */
function apiSidebar() {
  const pages = pagesOf("api");
  const group = (text: string, test: RegExp) => ({
    text,
    items: pages.filter((page) => test.test(page.link)).sort((a, b) => (a.link < b.link ? -1 : 1)),
  });
  const groups = [
    group("Tensors: @opt/core", /^\/api\/core(-|$|\/schedules|\/distributions)/),
    group("Models: @opt/nn, @opt/models", /^\/api\/(nn|models)/),
    group("Training and data", /^\/api\/(train|data|checkpoint|parallel)/),
    group("Devices", /^\/api\/(kernels|collectives|core\/backend)/),
    group("Other libraries", /^\/api\/(tfjs|jax-js)/),
  ];
  const taken = new Set(groups.flatMap(({ items }) => items.map((item) => item.link)));
  const optimizers = pages.filter((page) => !taken.has(page.link)).sort((a, b) => (a.link < b.link ? -1 : 1));
  groups.splice(3, 0, { text: "Optimizers", items: optimizers });
  return [{ text: "Packages", link: "/api/" }, ...groups];
}
