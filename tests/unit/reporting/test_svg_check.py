"""Nothing but shapes and text is drawn into a page."""

import pytest

from workflow_scripts.errors import DataError
from workflow_scripts.reporting.svg_check import checked_svg

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" {}>{}</svg>'


@pytest.mark.parametrize(
    "inner",
    [
        "<script>1</script>",
        "<SCRIPT>1</SCRIPT>",
        '<script xmlns="http://www.w3.org/1999/xhtml">1</script>',
        '<foreignObject><img xmlns="http://www.w3.org/1999/xhtml" src="x"/></foreignObject>',
        '<path onclick="f()"/>',
        '<path ONLOAD="f()"/>',
        '<a xlink:href="javascript:f()"><text>x</text></a>',
        '<use xlink:href="https://example.org/x.svg#a"/>',
        '<use href="other.svg#a"/>',
        '<image href="data:image/svg+xml;base64,AAAA"/>',
        '<rect style="fill: url(https://example.org/x)"/>',
        '<rect fill="url( &quot;x.svg#a&quot;)"/>',
        "<style>@import 'https://example.org/x.css';</style>",
        '<animate attributeName="href" to="javascript:f()"/>',
        '<set attributeName="onclick" to="f()"/>',
        "<title><![CDATA[><img src='x' onerror='f()'/>]]></title>",
        "<desc><!--><img src='x' onerror='f()'>--></desc>",
        "<?xml-stylesheet href='x.css'?>",
        '<handler type="text/javascript">f()</handler>',
    ],
)
def test_what_acts_is_refused(inner):
    with pytest.raises(DataError, match=r"fig.svg: .*Delete it and rerun"):
        checked_svg(HEAD.format("", inner), "fig.svg")


@pytest.mark.parametrize("attributes", ['onload="f()"', 'style="background: url(https://example.org)"'])
def test_the_outermost_element_is_looked_at_too(attributes):
    with pytest.raises(DataError, match="that acts"):
        checked_svg(HEAD.format(attributes, ""), "fig.svg")


@pytest.mark.parametrize(
    "text", ["", "<svg", "<html></html>", "<svg></svg>", "<!DOCTYPE svg [<!ENTITY a 'b'>]><svg>&a;</svg>"]
)
def test_what_is_no_svg_is_refused(text):
    with pytest.raises(DataError, match=r"fig\.svg"):
        checked_svg(text, "fig.svg")


def test_shapes_and_text_pass_as_they_are():
    inner = "<defs><clipPath id='c'><rect width='1'/></clipPath></defs><g clip-path='url(#c)' style=\"fill: url('#g')\">"
    inner += (
        "<text>onclick &lt;script&gt;</text><use xlink:href='#c'/></g><style>*{stroke-linecap: butt}</style>"
    )
    svg = HEAD.format("role='img'", inner)
    assert checked_svg(svg, "fig.svg") == svg
