// Below each page that the search finds, show where it has the words. Sphinx would read that page; one that is opened as
// a file may not. So conf.py has written the texts of all sections: SEARCH_TEXTS[page][section].
document.addEventListener("DOMContentLoaded", () => {  // before the search begins
  window.fetch = async (url) => ({ text: async () => url });
  Search.htmlToText = (url, anchor) => {
    const page = url.slice(document.documentElement.dataset.content_root.length).split(/\.html/)[0];
    const sections = SEARCH_TEXTS[page] ?? {};
    return sections[anchor?.slice(1)] ?? Object.values(sections).join(" ");
  };
});
