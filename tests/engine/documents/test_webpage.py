"""What a reader sees on a web page beside its plain text: numbers, powers, merged cells, hidden parts."""

import pytest

from tests.one_document import parse_document

MATH = "<math><mfrac><mrow><mi>a</mi><mo>+</mo><mi>b</mi></mrow><mn>2</mn></mfrac></math>"
KATEX = (
    f'<span class="katex"><span>{MATH}</span><span class="katex-html" aria-hidden="true">a+b2</span></span>'
)
WIKI = f'<span class="mwe-math-element"><span style="display: none;">{MATH}</span><img alt="x"></span>'


@pytest.mark.parametrize(
    ("page", "text"),
    [
        # numbers of lists
        ("<ol start=3><li>c<li>d</ol>", "3. c\n4. d"),
        ("<ol reversed><li>c<li>b<li>a</ol>", "3. c\n2. b\n1. a"),
        ("<ol reversed start=10><li>c<li>b</ol>", "10. c\n9. b"),
        ("<ol type=a><li>x<li>y</ol><ol type=I start=4><li>z</ol>", "a. x\nb. y\n\nIV. z"),
        ('<ol style="list-style-type: lower-roman"><li>x<li>y</ol>', "i. x\nii. y"),
        ('<ol style="list-style: none"><li>x</ol>', "x"),
        ("<ol><li>a<li value=7>b<li>c</ol>", "1. a\n7. b\n8. c"),
        ("<ol><li><p>a</p><p>more</p><li><ul><li>u</ul><li>c</ol>", "1. a\n\nmore\n\n2. u\n\n3. c"),
        ("<ol><li>a<ol type=a><li>x<li>y</ol><li>b</ol>", "1. a\n\na. x\nb. y\n\n2. b"),
        ("<ol start=x><li>a</ol><ul><li>b</ul>", "1. a\n\nb"),
        # pictures, what is struck out, and notes of books
        ("<p>Open:<img src=a.png alt='Mon to Fri'><img alt=''><img alt=a.jpg>now", "Open: [Mon to Fri] now"),
        ("<p>Price: <del>50</del> <s>45</s> 40", "Price: ~~50~~ ~~45~~ 40"),
        ("<p>It rises.<a role='doc-noteref' href='n.xhtml'>1</a>", "It rises.[1]"),
        # cells over several rows and columns
        ("<table><tr><td rowspan=2>A<td>1<tr><td>2<tr><td>B<td>3</table>", "A | 1\nA | 2\nB | 3"),
        ("<table><tr><th rowspan=2>M<th colspan=2>P<tr><th>R<th>S</table>", "M | P | P\nM | R | S"),
        ("<table><tr><td>1<td rowspan=2>A<tr><td>2</table>", "1 | A\n2 | A"),
        ("<table><tr><td rowspan=2 colspan=2>A<td>1<tr><td>2</table>", "A | A | 1\nA | A | 2"),
        ("<table><tr><td rowspan=0>A<td>1<tr><td>2</table>", "A | 1\nA | 2"),
        ("<table><tr><td colspan=3>Spring<tr><td>1<td>2<td>3</table>", "Spring\n1 | 2 | 3"),
        ("<table><thead><tr><th rowspan=9>H<tbody><tr><td>1<td>2</table>", "H\n1 | 2"),
        ("<table><tr><td><p>a</p><p>b</p></td><td><div>c</div></td></tr></table>", "a b | c"),
        # powers, indexes, marks of notes
        ("<p>3 × 10<sup>6</sup> cells on 20 m<sup>2</sup>", "3 × 10^6 cells on 20 m^2"),
        ("<p>10<sup>−3</sup>, x<sup>n+1</sup> and <i>e</i><sup>x</sup>y", "10^−3, x^(n+1) and e^x y"),
        ("<p>the 1<sup>st</sup> of 21<sup>er</sup> Acme<sup>TM</sup>", "the 1st of 21er AcmeTM"),
        ("<p>It rained.<sup>4</sup> Germany<sup>1</sup> won", "It rained.[4] Germany[1] won"),
        ("<p>It is 5 km)<sup>[1]</sup><sup><a role='doc-noteref' href='#n'>2</a></sup>", "It is 5 km)[1][2]"),
        ("<p>won<sup><a href='#n1'>1</a></sup> and<sup><a href='#n2'>[2]</a></sup>", "won[1] and[2]"),
        ("<p>H<sub>2</sub>O, x<sub>1</sub>, Y<sub>2</sub>, log<sub>10</sub>100", "H2O, x_1, Y_2, log_10 100"),
        ("<p><sup>14</sup>C and Ca<sup>2+</sup>", "14C and Ca^2+"),
        ("<p>2<sup>1</sup>&frasl;<sub>2</sub>\fcups", "2 1⁄2 cups"),
        ("<math><mi>x</mi></math><b class=katex-html>x<b class=katex-html>x</b></b> end", "x end"),
        ("<style>.u{vertical-align:super}</style>20 m<span class=u>2</span>", "20 m^2"),
        ("<p>x<span style='vertical-align: sub'>i</span>", "x_i"),
        ("<p>x<span style='vertical-align: 0%'>2</span>", "x2"),  # no power: its place is the line
        ("<p>x<span style='vertical-align: 25%'>2</span>", "x^2"),
        ("<h1>Fee<a href='#f'>¶</a></h1>20 m<span style='x:y; top: -.3em'>2</span>", "Fee\n\n20 m^2"),
        # what is a table by its roles
        ("<div role=row><span role=cell>a</span><span role=cell>b</span></div><div role=row>c", "a | b\nc"),
        # readings
        ("<p><ruby>漢<rp>(</rp><rt>かん</rt><rp>)</rp>字<rt>じ</rt></ruby>を", "漢字(かんじ)を"),
        ("<p><ruby>東京<rt>とうきょう</rt></ruby>", "東京(とうきょう)"),
        # formulas, once
        (f"<p>So {MATH} holds", "So (a + b)/2 holds"),
        (f"<p>So {KATEX} holds", "So (a + b)/2 holds"),
        (f"<p>So {WIKI} holds", "So (a + b)/2 holds"),
        ("<math><msup><mi>x</mi><mn>2</mn></msup><mo>=</mo><msqrt><mi>y</mi></msqrt></math>", "x^2 = √(y)"),
        ("<p>So <span class=MathJax_Preview>x</span><script type='math/tex'>x^2</script> is", "So x^2 is"),
        ("<table><tr><th></th><th>a<th>b<tr><td>c<td><td>d<tr><td></table>e", "| a | b\nc | | d\n\ne"),
        # what is hidden
        ("<p>a<p hidden>b<div style='display:none'>c</div><a style='left:-9999px'>e</a>d", "a\n\nd"),
        ("<p>a<i style='clip-path:inset(50%)'>b</i>c", "ac"),
        ("<p>a<span style='VISIBILITY: Hidden'>b</span>c<dialog id=y>d</dialog>", "ac"),
        ("<style>.x, #y {color: red; display: none}</style><p>a<p class='z x'>b<p id=y>c", "a"),
        ("<style>#y p.x, i {display: none}</style><p class=x>a<div id=y><p class=x>b<p>c<i>d", "a\n\nc"),
        ("<style>@media print {.x {display: none}}</style><p>a<p class=x>b", "a\n\nb"),
        ("<div style='display:none'>all of the text</div>", "all of the text"),
        ("<p>a<video>Your browser is old</video><datalist><option>b</datalist>", "a"),
        # forms, and code
        ("<textarea>typed</textarea><button>Copy</button><input value=Ann>", "typed\nCopy Ann"),
        ("<p>I agree <input type=checkbox checked> yes <input type=hidden value=x>", "I agree [x] yes"),
        ("<select><option>a<option selected>b</select>c", "a\n[x] b\nc"),
        ("<pre><span class=ln>1</span>a  b\n<span class=ln>2</span>  c</pre>", "a  b\n  c"),
    ],
)  # fmt: skip
@pytest.mark.reads(
    "HTML",
    "visible lines",
    "numbers of lists (`start`, `reversed`, `type`)",
    "tables with cells over several rows and columns in all their places",
    "powers as `10^6`, indexes as `x_1`, marks of notes as `[4]`",
    "readings of characters in brackets",
    "formulas once, as `(a+b)/2`",
    "descriptions of pictures in brackets",
    "what is struck out as `~~50~~`",
)
def test_a_page_is_read_as_it_is_seen(page, text):
    assert parse_document("a.html", page.encode()).text == text


@pytest.mark.parametrize(
    ("page", "note"),
    [
        ("<p>a<p hidden>b<p hidden> <div style='display:none'>c<b hidden>d</b></div>", "2 parts hidden"),
        ("<p>a<iframe src=b.html></iframe>", "1 embedded frame left out"),
        ("<p>a<svg><g><text>b</text></g></svg>", "the text of 1 drawing left out"),
        ("<p>a<style>.b {display: none}</style><p class=b>b", "1 part hidden"),
        (
            "<p>a<textarea>b</textarea><input value=c><input value=Send type=submit><input>",
            "2 form fields were read",
        ),
    ],
)
@pytest.mark.reads("HTML", "fields of forms")
@pytest.mark.leaves_out(
    "HTML", "parts that the page or its style sheet hides", "embedded frames", "texts of drawings"
)
def test_notes_count_what_was_left_out_or_rewritten(page, note):
    [found] = parse_document("a.html", page.encode()).notes
    assert note in found
