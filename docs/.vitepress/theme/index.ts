/** The site's look: VitePress's own theme with the system's fonts, runnable samples and the live panel. */
import type { Theme } from "vitepress";
import DefaultTheme from "vitepress/theme-without-fonts";
import Playground from "./Playground.vue";
import Sample from "./Sample.vue";
import "./style.css";

export default {
  extends: DefaultTheme,
  enhanceApp({ app }) {
    app.component("Playground", Playground).component("Sample", Sample);
  },
} satisfies Theme;
