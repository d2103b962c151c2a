// Below each page that the search finds, show where it has the words. Sphinx would read that page; one that is opened as
// a file may not. So conf.py has written the texts of all sections, packed: texts[page][section].
document.addEventListener("DOMContentLoaded", () => {  // before the search begins
  const packed = new Blob([Uint8Array.from(atob(SEARCH_TEXTS), (byte) => byte.charCodeAt(0))]);
  const unpacked = new Response(packed.stream().pipeThrough(new DecompressionStream("deflate"))).json();
  let texts;
  window.fetch = async (url) => ({ text: async () => { texts = await unpacked; return url; } });
  Search.htmlToText = (url, anchor) => {
    const page = url.slice(document.documentElement.dataset.content_root.length).split(/\.html/)[0];
    const sections = texts[page] ?? {};
    return sections[anchor?.slice(1)] ?? Object.values(sections).join(" ");
  };
});
