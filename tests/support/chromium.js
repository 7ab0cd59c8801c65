"use strict";
addEventListener("load", () => {
  const found = {};
  const box = (node) => { const { left, top, right, bottom } = node.getBoundingClientRect(); return { left, top, right, bottom }; };
  const overlap = (one, other, slack) =>
    Math.min(one.right, other.right) - Math.max(one.left, other.left) > slack &&
    Math.min(one.bottom, other.bottom) - Math.max(one.top, other.top) > slack;
  const isPoint = (mark) => [mark.right - mark.left, mark.bottom - mark.top].every((side) => side > 4 && side < 20);
  found.width = innerWidth;
  found.dark = matchMedia("(prefers-color-scheme: dark)").matches;
  found.sideways = document.documentElement.scrollWidth - document.documentElement.clientWidth;

  const luminance = (colour) => {
    const parts = colour.match(/[0-9.]+/g).slice(0, 3).map((part) => part / 255);
    const [red, green, blue] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const contrast = (one, other) => (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  const body = getComputedStyle(document.body).backgroundColor;
  found.figures = [...document.querySelectorAll("figure img")].map((image) => {
    const canvas = Object.assign(document.createElement("canvas"), { width: image.naturalWidth, height: image.naturalHeight });
    const pen = canvas.getContext("2d");
    pen.fillStyle = body;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.filter = getComputedStyle(image).filter;
    pen.drawImage(image, 0, 0);
    const { data } = pen.getImageData(0, 0, canvas.width, canvas.height), seen = new Map();
    for (let at = 0; at < data.length; at += 4) {
      const colour = `${data[at]}, ${data[at + 1]}, ${data[at + 2]}`;
      seen.set(colour, (seen.get(colour) || 0) + 1);
    }
    const commonest = [...seen].reduce((one, other) => (one[1] >= other[1] ? one : other))[0];
    return {
      paper: `rgb(${commonest})` === body,
      ink: Math.max(...[...seen.keys()].map((colour) => contrast(luminance(colour), luminance(body)))),
      right: box(image).right,
    };
  });

  for (const image of document.querySelectorAll("figure img")) {  // whose texts are not to be found before it is unpacked
    const bytes = Uint8Array.from(atob(image.currentSrc.split(",")[1]), (letter) => letter.charCodeAt(0));
    const svg = new DOMParser().parseFromString(new TextDecoder().decode(bytes), "image/svg+xml").documentElement;
    Object.assign(svg.style, { display: "block", width: `${image.getBoundingClientRect().width}px`, height: "auto" });
    image.closest("picture").replaceWith(document.importNode(svg, true));
  }
  found.texts = 0;
  found.overlapping = [];
  found.covering = [];
  found.cut = [];
  found.smallest = Infinity;
  for (const svg of document.querySelectorAll("figure svg")) {
    const texts = [...svg.querySelectorAll("text")].filter((text) => text.textContent.trim());
    const boxes = texts.map(box), frame = box(svg);
    const marks = [...svg.querySelectorAll("use")].map(box).filter(isPoint);
    const scale = svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
    found.texts += texts.length;
    texts.forEach((text, index) => {
      const own = boxes[index], name = text.textContent;
      found.smallest = Math.min(found.smallest, parseFloat(getComputedStyle(text).fontSize) * scale);
      for (let other = index + 1; other < texts.length; other++)
        if (overlap(own, boxes[other], 1.5)) found.overlapping.push([svg.id, name, texts[other].textContent]);
      if (marks.some((mark) => overlap(own, mark, 1))) found.covering.push(name);
      if (own.left < frame.left - 1 || own.right > frame.right + 1 || own.top < frame.top - 1 || own.bottom > frame.bottom + 1)
        found.cut.push(name);
    });
  }

  const paper = (node) => {
    for (let place = node; place; place = place.parentElement) {
      const colour = getComputedStyle(place).backgroundColor;
      if (!/, 0\)$/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const first = ["#comparison tbody td:not(.picture)", ".verdict strong"].map((name) => document.querySelector(name));
  found.reached = first.filter(Boolean).every((node) => box(node).right <= innerWidth);
  found.contrast = Infinity;
  for (const node of document.querySelectorAll("h1, h2, h3, p, li, td, th, a, code, caption, summary, button, dd, .below")) {
    found.contrast = Math.min(found.contrast, contrast(luminance(getComputedStyle(node).color), luminance(paper(node))));
  }

  found.links = [...document.querySelectorAll("a[href]")].map((link) => link.getAttribute("href"));
  found.missing = found.links.filter((link) => link.startsWith("#") && !document.getElementById(decodeURIComponent(link.slice(1))));
  found.unread = [...document.querySelectorAll(".notes li[id]")].map((note) => note.id).filter((id) => !found.links.includes(`#${id}`));

  const shown = (table, place) => [...table.tBodies[0].rows].map((row) => {
    const cell = row.cells[place];
    const isValue = (node) => !(node instanceof Element && node.matches("sup, .below"));
    const text = () => [...cell.childNodes].filter(isValue).map((node) => node.textContent).join("").trim();
    return !cell || cell.classList.contains("gap") ? null : text();
  });
  found.tables = [...document.querySelectorAll("table.sorts")].map((table) => {
    const heads = [...table.tHead.rows[0].cells];
    return heads.map((head, place) => {
      const button = head.querySelector("button"), turns = [shown(table, place)], ways = [];
      button.focus();
      const focused = document.activeElement === button;
      for (let turn = 0; turn < 3; turn++) {
        button.click();
        turns.push(shown(table, place));
        ways.push(head.getAttribute("aria-sort"));
      }
      return { head: button.textContent, focused, ways, turns };
    });
  });

  found.filters = [...document.querySelectorAll(".filter input")].map((field) => {
    const table = field.closest(".filter").nextElementSibling.querySelector("table"), rows = [...table.tBodies[0].rows];
    const type = (text) => { field.value = text; field.dispatchEvent(new Event("input")); };
    const words = rows[1].cells[0].textContent.trim().split(/\s+/).slice(0, 2).join(" ");
    type(words.toUpperCase());
    const left = rows.filter((row) => row.getClientRects().length > 0).map((row) => row.textContent);
    const status = table.closest(".wide").previousElementSibling.querySelector("[role=status]").textContent;
    type("");
    return { words, left, status, rows: rows.length, after: rows.filter((row) => row.getClientRects().length > 0).length, named: field.labels.length };
  });

  parent.postMessage(JSON.stringify(found), "*");
});
