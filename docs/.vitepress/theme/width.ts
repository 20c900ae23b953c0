/** How wide a place is, in pixels: 0 until the page's script has taken over. */
import { onMounted, onUnmounted, type Ref, ref } from "vue";

export function useWidth(place: Readonly<Ref<HTMLElement | null>>): Readonly<Ref<number>> {
  const width = ref(0);
  let observer: ResizeObserver | undefined;
  onMounted(() => {
    observer = new ResizeObserver(([entry]) => {
      width.value = Math.floor(entry!.contentRect.width);
    });
    observer.observe(place.value!);
  });
  onUnmounted(() => observer?.disconnect());
  return width;
}
